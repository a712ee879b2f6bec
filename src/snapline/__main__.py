"""The `snapline` command, `python -m snapline`, and what `spark-submit` is given to run."""

from snapline.runs.interrupt import leave_on_signals


def main() -> None:
    """The command; whoever interrupts it while its modules are imported sees no traceback of them."""
    leave_on_signals()
    from snapline.cli import app as cli

    cli.main()


if __name__ == "__main__":
    main()
