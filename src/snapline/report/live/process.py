"""The live page in a process of its own, beside what it shows, which never waits for it."""

import multiprocessing
import signal
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection

from snapline.report.live.server import LiveServer, LiveSource

START_S = 30
STOP_S = 15


class LiveProcess:
    """A process that serves a page until it is told to stop, or until this process is gone.

    `follow` is called in that process, and returns what the page shows.
    """

    def __init__(self, follow: Callable[[], LiveSource]) -> None:
        fresh = multiprocessing.get_context("spawn")
        self._link, theirs = fresh.Pipe()
        self._process = fresh.Process(target=_serve, args=(follow, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self.url: str | None = None  #: where the page is; None: it could not be served
        if self._link.poll(START_S):
            with suppress(EOFError):
                self.url = str(self._link.recv())

    def stop(self) -> None:
        """Let all viewers see the last state, and end the process."""
        with suppress(OSError):
            self._link.send(None)
        self._process.join(STOP_S)
        if self._process.is_alive():
            self._process.terminate()
        self._link.close()


def _serve(follow: Callable[[], LiveSource], link: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who started this, who then ends it
    server = LiveServer(follow())
    server.start()
    link.send(server.url)
    with suppress(EOFError, OSError):
        link.recv()  # a message, or the end of the process that started this one
    server.stop()
