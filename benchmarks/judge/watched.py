"""The memory and CPU time of a process and all that it starts, sampled while it runs."""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.common.memory import PAGE

SAMPLE_S = 0.1
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Watched:
    """The most memory that processes took together, and their CPU time, sampled by a thread."""

    root: int
    rss: int = 0
    java_rss: int = 0
    ended: bool = False
    cpu: dict[int, float] = field(default_factory=dict)  # by process, also of those that have ended

    def watch(self) -> None:
        while not self.ended:
            found = _tree(self.root)
            self.rss = max(self.rss, sum(rss for _, rss, _ in found.values()))
            java = (rss for name, rss, _ in found.values() if name == "java")
            self.java_rss = max(self.java_rss, sum(java))
            self.cpu.update({pid: seconds for pid, (*_, seconds) in found.items()})
            time.sleep(SAMPLE_S)

    @property
    def cpu_s(self) -> float:
        """The CPU time of all of them."""
        return sum(self.cpu.values())


def _tree(root: int) -> dict[int, tuple[str, int, float]]:
    """Name, RSS and CPU time of a process and of all below it."""
    found: dict[int, tuple[int, tuple[str, int, float]]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            before, _, after = (path / "stat").read_text().rpartition(")")
            rss = int((path / "statm").read_text().split()[1]) * PAGE
        except (OSError, IndexError):
            continue  # it has ended
        words = after.split()
        cpu = (int(words[11]) + int(words[12])) / TICKS
        found[int(path.name)] = int(words[1]), (before.partition("(")[2], rss, cpu)
    mine = {root}
    while more := {pid for pid, (parent, _) in found.items() if parent in mine} - mine:
        mine |= more
    return {pid: found[pid][1] for pid in mine if pid in found}
