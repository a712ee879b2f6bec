"""The `snapline` command, `python -m snapline`, and what `spark-submit` is given to run."""

from snapline.runs.interrupt import leave_on_signals


def main() -> None:
    """Run the command line. A signal that comes while its modules are imported prints no traceback."""
    leave_on_signals()
    from snapline.cli import app as cli

    cli.main()


if __name__ == "__main__":
    main()
