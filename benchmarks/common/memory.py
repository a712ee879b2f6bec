"""What the kernel says about the memory of processes, in bytes.

RSS counts all pages that are there, those that processes share with each other in each of them; PSS counts
a shared page by its share, so that the sum over processes is what they take together.
"""

import os
from dataclasses import dataclass
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Memory:
    """Of one process, at one moment."""

    rss: int
    pss: int


def memory_of(pid: int) -> Memory | None:
    """The memory of a process; None once it is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = dict(line.split()[:2] for line in lines[1:])
    return Memory(int(fields["Rss:"]) * 1024, int(fields["Pss:"]) * 1024)


def peak_of(pid: int) -> Memory | None:
    """The highest memory of a process so far; None once it is gone.

    The kernel keeps the highest RSS. What was given back since then was the process's own: nobody gives
    pages back that it shares with the process from which it was forked.
    """
    now = memory_of(pid)
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return None
    highest = next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)
    if now is None or not highest:
        return None
    return Memory(max(highest, now.rss), now.pss + max(highest - now.rss, 0))


def rss() -> int:
    """The RSS of this process, from the kernel's counters: it costs the same however much there is."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def available() -> int:
    """What new processes could take on this machine."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    fields = dict(line.split()[:2] for line in lines)
    return int(fields["MemAvailable:"]) * 1024
