"""How much of the machine others used while a run was measured.

The CPU time of all processes but this one and its descendants: slots, and the Java virtual machine that
starts them. A process that ends hands its time on to the one that waits for it, so nothing is lost with
processes that were killed.

Who measures in a container sees only the processes of the container; the time of all others is in what the
system says about the whole machine. But that is counted in samples: in runs on an idle machine with two
cores it was 1 to 6 % of the machine above what processes had used, and 8 % for a few seconds. Why is not
known. So what nobody was seen to use counts only beyond 10 %. Time spent on interrupts is nobody's: a run
that sends over the loopback device makes most of it itself.
"""

import os
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_BUSY = (0, 1, 2)  # user, nice, system: fields of /proc/stat in ticks
_STEAL, _ALL = 7, slice(0, 8)
_PARENT, _TIMES = 1, slice(11, 15)  # of /proc/PID/stat, behind the name in brackets
_SAMPLING_ERROR = 0.10  # of the machine


@dataclass(frozen=True, slots=True)
class LoadReading:
    """CPU time since the start of the machine, in ticks."""

    whole: int  # of all cores, idle or not
    steal: int  # that a host took away
    busy: int  # of all processes, by samples
    own: int  # of this process and its descendants
    others: int  # of all other processes that can be seen

    def foreign_share(self, later: "LoadReading") -> float:
        """The share of the machine's CPU time that others used between two readings, or a host took."""
        whole, steal = later.whole - self.whole, later.steal - self.steal
        if whole <= 0:
            return 0.0
        left_over = later.busy - self.busy - (later.own - self.own)
        unseen = left_over - _SAMPLING_ERROR * whole
        return (max(0.0, later.others - self.others, unseen) + steal) / whole


def read_load() -> LoadReading:
    """The CPU times as they are now."""
    fields = [int(field) for field in (_PROC / "stat").read_text().split("\n", 1)[0].split()[1:]]
    own, others = _processes()
    busy = sum(fields[place] for place in _BUSY)
    return LoadReading(sum(fields[_ALL]), fields[_STEAL], busy, own, others)


def _processes() -> tuple[int, int]:
    """The ticks of this process and its descendants, and of all others, with those of dead children."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdecimal() and (stat := _stat(entry)) is not None:
            pid = int(entry.name)
            parents[pid], ticks[pid] = int(stat[_PARENT]), sum(map(int, stat[_TIMES]))
    own = {os.getpid()}
    while found := {pid for pid, parent in parents.items() if parent in own and pid not in own}:
        own |= found
    mine = sum(ticks.get(pid, 0) for pid in own)
    return mine, sum(ticks.values()) - mine


def _stat(process: Path) -> list[str] | None:
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended meanwhile
        return None
