"""What the processes of a run use: CPU time and memory of its slots, from the first record due to its end.

Slots are found by the process ids that they have told the driver, so it does not matter who has started
them. The CPU time of what runs beside them, the driver and Java, is counted apart. Nothing is read while
the run goes on: the kernel itself keeps the highest memory of a process.
"""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.common.memory import peak_of
from snapline.journal.entry import Happened
from snapline.journal.happenings import JobFinished
from snapline.runtime.driver.driver import Driver

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """What a process has computed so far; one that has ended is known until somebody waits for it."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


@dataclass
class Usage:
    """Of one run. All that is to be read is read by then, so it is whole once the run has ended."""

    beside: Sequence[int] = ()  # processes that run beside slots and driver
    cpu_s: dict[str, float] = field(
        default_factory=dict
    )  # by process, from the first record due on
    seconds: float = 0.0  # that this took
    warm_cpu_s: float = 0.0  # of all slots, without the warm-up ...
    warm_seconds: float = 0.0
    beside_cpu_s: float = 0.0  # of the driver and what runs beside it
    rss: int = 0  # the highest of each slot, added up
    pss: int = 0
    _began: dict[str, float] = field(default_factory=dict)
    _warm: dict[str, float] = field(default_factory=dict)
    _began_s: float = 0.0
    _warm_s: float = 0.0
    _beside_before: float = 0.0

    def begin(self, driver: Driver) -> None:
        """Input is due from now on: what was computed before does not count."""
        self._began = self._warm = _slots(driver)
        self._began_s = self._warm_s = time.monotonic()
        self._beside_before = self._beside()

    def warm(self, driver: Driver) -> None:
        """The warm-up is over."""
        self._warm, self._warm_s = _slots(driver), time.monotonic()

    def observe(self, driver: Driver, happened: Happened) -> None:
        """Read everything at the end of the job, when its slots are still there."""
        if not isinstance(happened.what, JobFinished):
            return
        now, now_s = _slots(driver), time.monotonic()
        self.cpu_s = {tag: spent - self._began.get(tag, 0.0) for tag, spent in now.items()}
        self.seconds = now_s - self._began_s
        self.warm_cpu_s = sum(spent - self._warm.get(tag, 0.0) for tag, spent in now.items())
        self.warm_seconds = now_s - self._warm_s
        self.beside_cpu_s = self._beside() - self._beside_before
        peaks = [peak for pid in _pids(driver).values() if (peak := peak_of(pid)) is not None]
        self.rss = sum(peak.rss for peak in peaks)
        self.pss = sum(peak.pss for peak in peaks)

    def _beside(self) -> float:
        return time.process_time() + sum(map(cpu_s, self.beside))


def _pids(driver: Driver) -> dict[str, int]:
    members = driver.roster.members.values()
    return {member.tag: member.hello.pid for member in members if member.life is not None}


def _slots(driver: Driver) -> dict[str, float]:
    spent = {}
    for tag, pid in _pids(driver).items():
        try:
            spent[tag] = cpu_s(pid)
        except FileNotFoundError:  # killed this very moment
            continue
    return spent
