"""How much of the machine others used while a run was measured.

The CPU time of all processes but this one and its descendants: slots, and the Java virtual machine that
starts them. Processes are looked at twice a second, because the time of one that ends may be gone with it:
it is handed on only to a parent that waits for it, and Spark's daemon waits for none of its workers. What
such a process used after the last look is seen by nobody.

Who measures in a container sees only the processes of the container; the time of all others is in what the
system says about the whole machine. But that is counted in samples, and also has what nobody saw of
processes that ended. So what nobody was seen to use counts only beyond 10 % of the machine. Time spent on
interrupts is nobody's: a run that sends over the loopback device makes most of it itself.
"""

import os
import threading
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias

_PROC = Path("/proc")
_BUSY = (0, 1, 2)  # user, nice, system: fields of /proc/stat in ticks
_STEAL, _ALL = 7, slice(0, 8)
_PARENT, _BORN = 1, 19  # fields of /proc/PID/stat behind the name in brackets
_OWN_TIME, _HANDED_ON = slice(11, 13), slice(13, 15)
_SAMPLING_ERROR = 0.10  # of the machine
_LOOK_S = 0.5

ProcessId: TypeAlias = tuple[int, int]
"""A number of a process, which may be given again, and when the process was started."""


@dataclass(frozen=True, slots=True)
class MachineTime:
    """CPU time of the machine since its start, in ticks."""

    whole: int  # of all cores, idle or not
    steal: int  # that a host took away
    busy: int  # of all processes, by samples


@dataclass(frozen=True, slots=True)
class ProcessTime:
    """CPU time of one process since its start, in ticks."""

    parent: int
    used: int  # by itself
    handed_on: int  # by children that have ended, and for which it has waited


class ProcessBook:
    """What processes have used since the first look at them: this one with its descendants, and others."""

    def __init__(self, me: int) -> None:
        self.own = 0  #: ticks of this process and its descendants
        self.others = 0  #: ticks of all other processes
        self._me = me
        self._mine: set[ProcessId] = set()  # also those whose parent has ended meanwhile
        self._last: Mapping[ProcessId, ProcessTime] | None = None

    def look(self, now: Mapping[ProcessId, ProcessTime]) -> None:
        """Take in what all processes have used by now."""
        self._find_mine(now)
        last, self._last = self._last, now
        if last is None:
            return
        counted: dict[int, int] = defaultdict(int)  # of children that have ended, by their parent
        for process, before in last.items():
            if process not in now:
                counted[before.parent] += before.used + before.handed_on
        nothing = ProcessTime(0, 0, 0)
        for process, time in now.items():
            before = last.get(process, nothing)
            unseen = time.handed_on - before.handed_on - counted[process[0]]
            used = time.used - before.used + max(0, unseen)
            if process in self._mine:
                self.own += used
            else:
                self.others += used

    def _find_mine(self, now: Mapping[ProcessId, ProcessTime]) -> None:
        numbers = {number for number, _ in self._mine.intersection(now)} | {self._me}
        while found := {
            process
            for process, time in now.items()
            if process not in self._mine and (process[0] == self._me or time.parent in numbers)
        }:
            self._mine |= found
            numbers |= {number for number, _ in found}


class LoadWatch:
    """Looks at all processes while its context is open; `foreign` is known when it is closed."""

    foreign: float  #: the share of the machine's CPU time that others used, or a host took

    def __enter__(self) -> Self:
        self._book = ProcessBook(os.getpid())
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="load of others", daemon=True)
        self._before = read_machine()
        self._book.look(read_processes())
        self._thread.start()
        return self

    def _follow(self) -> None:
        while not self._over.wait(_LOOK_S):
            self._book.look(read_processes())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
        self._book.look(read_processes())
        now = read_machine()
        self.foreign = foreign_share(self._before, now, self._book.own, self._book.others)


def foreign_share(before: MachineTime, now: MachineTime, own: int, others: int) -> float:
    """The share of the machine's CPU time between two readings that others used, or a host took.

    `own` and `others` are what processes were seen to use meanwhile, in ticks.
    """
    whole = now.whole - before.whole
    if whole <= 0:
        return 0.0
    unseen = now.busy - before.busy - own - _SAMPLING_ERROR * whole
    # The kernel counts time of processes exactly and that of the machine in samples, so a part may be more.
    return min(1.0, (max(0.0, others, unseen) + now.steal - before.steal) / whole)


def read_machine() -> MachineTime:
    """The CPU times of the machine as they are now."""
    fields = [int(field) for field in (_PROC / "stat").read_text().split("\n", 1)[0].split()[1:]]
    return MachineTime(sum(fields[_ALL]), fields[_STEAL], sum(fields[place] for place in _BUSY))


def read_processes() -> dict[ProcessId, ProcessTime]:
    """The CPU times of all processes that can be seen, as they are now."""
    found: dict[ProcessId, ProcessTime] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdecimal() and (stat := _stat(entry)) is not None:
            used, handed_on = (sum(map(int, stat[some])) for some in (_OWN_TIME, _HANDED_ON))
            process = int(entry.name), int(stat[_BORN])
            found[process] = ProcessTime(int(stat[_PARENT]), used, handed_on)
    return found


def _stat(process: Path) -> list[str] | None:
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended meanwhile
        return None
