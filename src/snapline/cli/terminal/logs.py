"""`-v`: what the modules of Snapline log, on standard error.

Modules log what helps to find the cause of trouble: sessions, launches, losses, decisions, fallbacks; never
a line per record or message. Without `-v` all of it is silent. `SNAPLINE_LOG=1` is the same as `-v`.
"""

import logging
from typing import Annotated

import typer

from snapline.cli.terminal.console import write_message

VerboseOption = Annotated[
    int,
    typer.Option(
        "--verbose",
        "-v",
        count=True,
        metavar=" ",
        show_default=False,
        envvar="SNAPLINE_LOG",
        help="Log what Snapline does to standard error; [cyan]-vv[/] logs more. It can also stand "
        "behind the command.",
    ),
]


def _louder(context: typer.Context, verbose: int) -> int:
    """Log as the options before and behind the name of the command ask for together."""
    if verbose:
        before = context.parent.params["verbose"] if context.parent is not None else 0
        log_to_stderr(before + verbose)
    return verbose


CommandVerboseOption = Annotated[
    int,
    typer.Option(
        "--verbose",
        "-v",
        count=True,
        metavar=" ",
        show_default=False,
        expose_value=False,
        callback=_louder,
        help="Log what Snapline does to standard error; [cyan]-vv[/] logs more.",
    ),
]
"""`-v` behind the name of a command. Its callback does everything, so commands do not read it."""


class StderrHandler(logging.Handler):
    """Writes log entries to `sys.stderr` as it is at that moment, so that a live table can make room."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one entry; characters in it that would move the cursor are escaped."""
        write_message(self.format(record))


def log_to_stderr(verbose: int) -> None:
    """Send the logs of Snapline to standard error: from INFO on, or from DEBUG on for `-vv`."""
    logger = logging.getLogger("snapline")
    for old in [handler for handler in logger.handlers if isinstance(handler, StderrHandler)]:
        logger.removeHandler(old)
    logger.setLevel(logging.NOTSET)
    logger.propagate = True
    if verbose:
        handler = StderrHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s", "%H:%M:%S"))
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG if verbose > 1 else logging.INFO)
        logger.propagate = False
