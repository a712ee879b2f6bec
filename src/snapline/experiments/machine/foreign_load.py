"""How much of the machine others used while a run was measured.

All CPU time that the machine's processes used, less that of this process and all its descendants: slots,
and the Java virtual machine that starts them. A process that ends hands its time on to the one that waits
for it, so nothing is lost with processes that were killed.

Time spent on interrupts is nobody's: the system charges it to no process. A run that sends over the
loopback device makes most of it itself (3 to 5 % of a machine with two cores), so it is not foreign.
"""

import os
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_BUSY = (0, 1, 2)  # user, nice, system: fields of /proc/stat in ticks
_IDLE, _INTERRUPTS, _STEAL = (3, 4), (5, 6), 7
_PARENT, _TIMES = 1, slice(11, 15)  # of /proc/PID/stat, behind the name in brackets


@dataclass(frozen=True, slots=True)
class LoadReading:
    """CPU time since the start of the machine, in ticks."""

    busy: int  # of all processes
    steal: int  # that a host took away
    rest: int  # idle, or spent on interrupts
    own: int  # of this process and its descendants

    def foreign_share(self, later: "LoadReading") -> float:
        """The share of the machine's CPU time that others used between two readings, or a host took."""
        busy, steal = later.busy - self.busy, later.steal - self.steal
        whole = busy + steal + later.rest - self.rest
        return max(0.0, (busy + steal - (later.own - self.own)) / whole) if whole > 0 else 0.0


def read_load() -> LoadReading:
    """The CPU times as they are now."""
    fields = [int(field) for field in (_PROC / "stat").read_text().split("\n", 1)[0].split()[1:]]
    busy = sum(fields[place] for place in _BUSY)
    rest = sum(fields[place] for place in (*_IDLE, *_INTERRUPTS))
    return LoadReading(busy, fields[_STEAL], rest, _own())


def _own() -> int:
    """The ticks of this process and its descendants, with those of their dead children."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdecimal() and (stat := _stat(entry)) is not None:
            pid = int(entry.name)
            parents[pid], ticks[pid] = int(stat[_PARENT]), sum(map(int, stat[_TIMES]))
    own = {os.getpid()}
    while found := {pid for pid, parent in parents.items() if parent in own and pid not in own}:
        own |= found
    return sum(ticks.get(pid, 0) for pid in own)


def _stat(process: Path) -> list[str] | None:
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended meanwhile
        return None
