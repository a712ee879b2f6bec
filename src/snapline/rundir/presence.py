"""Which process runs a run: said in `driver.json`, so that a second one can be told about the first.

It is for that message only, and nothing is safe because of it: that is the ledger's business. Whoever finds
that a driver lives is spared a race that one of the two would lose. On this machine a driver lives if a
process of its number exists, was started at the same time and does not stand still. On another machine
it lives if its file is touched while one looks, which a driver does with every heartbeat; no clocks are
compared. Where neither can be told the run counts as free, and the ledger decides.
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
"""So long a driver of another machine is watched for a sign of life."""


@dataclass(frozen=True, slots=True)
class Presence:
    """The word of the driver that runs a run, as long as it does."""

    directory: RunDirectory
    author: str
    fd: int  # of our own file: once another driver has written its own, ours is nobody's

    @staticmethod
    def announce(directory: RunDirectory, author: str) -> "Presence":
        """Say that this process runs a run."""
        here = os.getpid()
        started, _ = _process(here) or ("", "")
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
        """Say that this process runs the run no more: remove the file, unless another driver wrote it."""
        os.close(self.fd)
        if (_read(self.directory) or {}).get("author") == self.author:
            with contextlib.suppress(OSError):
                (self.directory.path / FILE).unlink(missing_ok=True)


def refuse_if_driven(directory: RunDirectory) -> None:
    """Raise UsageError if a driver of this run lives; says which."""
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
        found = _process(int(said["pid"]))
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


def _process(pid: int) -> tuple[str, str] | None:
    """When a process of this machine was started, in ticks since it booted, and its state."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = status.rpartition(")")[2].split()
    return fields[19], fields[0]
