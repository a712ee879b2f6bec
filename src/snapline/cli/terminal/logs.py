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
        help="Log what Snapline does to standard error, as in [cyan]snapline -v run q12[/]; twice: more.",
    ),
]


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
