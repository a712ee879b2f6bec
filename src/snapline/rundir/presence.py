"""Which process runs a run: said in `driver.json`, so that a second one can be told about the first.

The file serves that message only: what keeps two drivers apart is the ledger. A second driver that
learns that the first one lives is spared a race for the next decision, which one of the two would lose.
A driver on this machine lives if a process with its pid exists, was started at the same time and is not
stopped. A driver on another machine lives if it touches the file while we watch, as it does with every
heartbeat; no clocks are compared. Where neither can be found out, the run counts as free, and the
ledger decides.
"""

import contextlib
import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snapline.errors import SnaplineError, UsageError
from snapline.rundir.directory import RunDirectory

FILE = "driver.json"
WATCHED_S = 2.0
"""For how many seconds a driver on another machine is watched for a sign of life."""


@dataclass(frozen=True, slots=True)
class Presence:
    """The statement of a driver that it runs a run: `driver.json`, kept for as long as that is true."""

    directory: RunDirectory
    author: str
    fd: int  # of the file that we wrote, so that we never touch the one of another driver

    @staticmethod
    def announce(directory: RunDirectory, author: str) -> "Presence":
        """Write down that this process runs a run."""
        here = os.getpid()
        started, _ = process_state(here) or ("", "")
        said = {
            "pid": here,
            "host": socket.gethostname(),
            "started": started,
            "since": time.strftime("%Y-%m-%d %H:%M:%S"),
            "author": author,
        }
        directory.write(FILE, said)
        return Presence(directory, author, os.open(directory.path / FILE, os.O_RDONLY))

    def beat(self) -> None:
        """Show that this process still runs the run: touch its file."""
        with contextlib.suppress(OSError):
            os.utime(self.fd)

    def leave(self) -> None:
        """Take the statement back: remove the file, unless another driver has written it since."""
        os.close(self.fd)
        if (_read(self.directory) or {}).get("author") == self.author:
            with contextlib.suppress(OSError):
                (self.directory.path / FILE).unlink(missing_ok=True)


def refuse_if_driven(directory: RunDirectory) -> None:
    """Raise UsageError if another driver of this run lives; the message says which."""
    said = _read(directory)
    if said is None or not _lives(directory.path / FILE, said):
        return
    raise UsageError(
        f"{directory.name} is being run by process {said['pid']} on {said['host']}, since "
        f"{said['since']}: wait for it, or end it first"
    )


def _read(directory: RunDirectory) -> dict[str, Any] | None:
    if not (directory.path / FILE).is_file():
        return None
    try:
        said = directory.read(FILE)
    except SnaplineError:
        return None
    return said if {"pid", "host", "started", "since", "author"} <= said.keys() else None


def _lives(file: Path, said: dict[str, Any]) -> bool:
    if said["host"] == socket.gethostname():
        found = process_state(int(said["pid"]))
        return found is not None and found[0] == said["started"] and found[1] not in "TtZX"
    return _is_touched(file)


def _is_touched(file: Path) -> bool:
    with contextlib.suppress(OSError):
        before = file.stat().st_mtime_ns
        until_s = time.monotonic() + WATCHED_S
        while time.monotonic() < until_s:
            time.sleep(0.1)
            if file.stat().st_mtime_ns != before:
                return True
    return False


def process_state(pid: int) -> tuple[str, str] | None:
    """When a process of this machine was started (ticks since boot), and its state; None if it is gone."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = status.rpartition(")")[2].split()
    return fields[19], fields[0]
