"""The live page: `report --live` serves it in this process, `run --live` in one of its own."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from snapline.cli.terminal.console import escape, messages, results

if TYPE_CHECKING:
    from snapline.report.live.process import LiveProcess
    from snapline.runs.listener import Listening
    from snapline.runtime.driver.driver import Driver
    from snapline.runtime.driver.timeline import Watcher


def serve_page(name: str, runs: Path, open_it: bool) -> int:
    """Serve the page of a run until Ctrl-C; return the exit code."""
    from snapline.report.live.server import LiveServer
    from snapline.rundir.directory import RunDirectory

    server = LiveServer(RunDirectory.open(runs, name))
    server.start()
    results().print(f"live page: {escape(server.url)}", soft_wrap=True)
    messages().print("it is for this machine only, and shows the run until Ctrl-C")
    if open_it:
        open_page(server.url)
    try:
        while True:
            time.sleep(1)
    except KeyboardInterrupt:
        return 0
    finally:
        server.stop()


def open_page(url: str) -> None:
    """Open an address in a browser, if there is one."""
    import webbrowser

    if not webbrowser.open(url):
        messages().print("no browser could be started: open the address yourself")


class _Beside:
    """Starts the live page when the run has a directory."""

    def __init__(self) -> None:
        self.process: LiveProcess | None = None

    def start(self, path: Path) -> None:
        from snapline.report.live.process import LiveProcess

        self.process = LiveProcess(path)
        if self.process.url is None:
            messages().print("[yellow]there is no live page:[/] its process did not start")
        else:
            where = escape(self.process.url)
            messages().print(f"live page, for this machine only: {where}", soft_wrap=True)


@contextmanager
def beside(watcher: "Watcher", *, live: bool) -> "Iterator[Watcher | Listening]":
    """The watcher of a run; if it is to be shown live, one that starts a page when the run begins."""
    if not live:
        yield watcher
        return
    from snapline.runs.listener import Listening

    page = _Beside()

    class Beginning(Listening):
        def begins(self, driver: "Driver") -> None:
            page.start(driver.directory.path)
            super().begins(driver)

    try:
        yield Beginning(None, watcher)
    finally:
        if page.process is not None:
            page.process.stop()
