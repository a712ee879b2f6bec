"""The processes of a system: a group that is started, killed and paused as one, and never left behind.

Everything that a program starts belongs to its process group unless it leaves it, so a signal to the
group reaches the program and its Java at once, and nothing else. Signals are sent to the group's number,
which is the program's process id, and only while that process was not waited for: until then the kernel
gives its number to nobody else.

A group does not outlive whoever started it. Its standard input is a pipe that this process holds open;
when that breaks, the program kills its own group (`die_with_parent`). A group that is stopped just then
cannot notice; but it belongs to this process's session, and the kernel wakes and hangs up stopped groups
that become orphans.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from snapline.errors import SnaplineError
from snapline.storage.files.places import is_private, make_file

END_S = 20.0
POLL_S = 0.01
DEAD = ("Z", "X")


class Group:
    """A program that runs, and all that it has started."""

    def __init__(
        self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        """Start a program. Its output goes into the log, and its files are as private as the log is."""
        with os.fdopen(make_file(log, os.O_APPEND), "ab") as file:
            self._program = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=file,
                env=environment,
                process_group=0,
                umask=0o077 if is_private(log.parent) else -1,
            )
        self.pid = self._program.pid

    def ended(self) -> int | None:
        """How the program ended (negative: by this signal); None while it runs."""
        return self._program.poll()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the whole group."""
        if self._program.returncode is None:  # otherwise another process may have its number by now
            with suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def kill(self, others: Sequence[int] = ()) -> None:
        """Send SIGKILL to the group; return when the program and these others of its group are gone."""
        self.signal(signal.SIGKILL)
        self._program.wait()
        if self._program.stdin is not None:
            with suppress(OSError):
                self._program.stdin.close()
        deadline = time.monotonic() + END_S
        while remaining := [pid for pid in others if lives(pid)]:
            if time.monotonic() > deadline:
                raise SnaplineError(f"process {remaining[0]} does not end, although it was killed")
            time.sleep(POLL_S)


def python(module: str, *arguments: str) -> list[str]:
    """The command that runs a module with this Python."""
    return [sys.executable, "-m", module, *arguments]


def lives(pid: int) -> bool:
    """Whether a process exists and is not a zombie that waits for its parent."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in DEAD


def children(pid: int) -> dict[int, list[str]]:
    """The processes that a process has started and that live: id -> the words of its command."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            state, parent = (path / "stat").read_text().rpartition(")")[2].split()[:2]
            if int(parent) == pid and state not in DEAD:
                found[int(path.name)] = (path / "cmdline").read_text().split("\0")
    return found


def die_with_parent() -> None:
    """For a thread of the program: kill its group as soon as whoever started it is gone."""
    while os.read(0, 1):  # not through sys.stdin, which would be locked when the program ends
        pass
    os.killpg(0, signal.SIGKILL)
