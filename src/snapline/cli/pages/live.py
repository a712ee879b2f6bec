"""The live page: `report --live` serves it in this process, `run --live` in one of its own."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from snapline.cli.terminal.console import escape, messages, results, tell_live_page
from snapline.runs.interrupt import ended_by_ctrl_c

if TYPE_CHECKING:
    from snapline.report.live.process import LiveProcess
    from snapline.report.live.server import LiveSource
    from snapline.runs.listener import Listening
    from snapline.runtime.driver.driver import Driver
    from snapline.runtime.driver.timeline import Watcher


def serve_page(name: str, runs: Path, open_it: bool) -> int:
    """Serve the page of a run, or of a sweep, until Ctrl-C; return the exit code. Raises UsageError."""
    from snapline.report.live.server import LiveServer

    server = LiveServer(_followed(name, runs))
    server.start()
    try:
        with ended_by_ctrl_c():
            results().print(f"live page: {escape(server.url)}", soft_wrap=True)
            messages().print("it is for this machine only, until Ctrl-C")
            if open_it:
                open_page(server.url)
            while True:
                time.sleep(1)
        return 0
    finally:
        server.stop()


def _followed(name: str, runs: Path) -> "LiveSource":
    from snapline.cli.experiments.live_sweep import SweepFollower
    from snapline.experiments.sweep_directory import is_sweep
    from snapline.report.live.follower import JournalFollower
    from snapline.rundir.directory import RunDirectory

    if is_sweep(Path(name)):
        return SweepFollower(Path(name))
    return JournalFollower(RunDirectory.open(runs, name))


def open_page(url: str) -> None:
    """Open an address in a browser, if there is one."""
    import webbrowser

    if not webbrowser.open(url):
        messages().print("no browser could be started: open the address yourself")


class _Beside:
    """Starts the live page when the run has a directory."""

    def __init__(self) -> None:
        self.process: LiveProcess | None = None

    def start(self, driver: "Driver") -> None:
        from snapline.report.live.follower import follow_run
        from snapline.report.live.process import LiveProcess

        self.process = LiveProcess(partial(follow_run, driver.directory.path))
        tell_live_page(self.process.url)


@contextmanager
def beside(watcher: "Watcher", *, live: bool) -> "Iterator[Watcher | Listening]":
    """The watcher of a run; if it is to be shown live, one that starts a page when the run begins."""
    if not live:
        yield watcher
        return
    from snapline.runs.listener import Beginning

    page = _Beside()
    try:
        yield Beginning(page.start, watcher)
    finally:
        if page.process is not None:
            page.process.stop()
