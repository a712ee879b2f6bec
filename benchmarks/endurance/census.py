"""What a run takes up while it goes on: files, bytes, descriptors, memory, and what the driver holds.

A census is taken in the driver's process, every so many seconds. Files are counted in the run directory,
folder by folder; descriptors and memory are those of the driver and of its slots, as the kernel has them.
The time to resume is how long a new driver would read before it could decide anything (`read_past`).
"""

import gc
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.common.memory import memory_of
from benchmarks.common.pages import table
from benchmarks.common.real_run import every
from snapline.experiments.rates.slopes import slope_of
from snapline.rundir.past import read_past
from snapline.runtime.driver.driver import Driver

FOLDERS = ("journal", "store/snapshot", "store/decision", "logs", "output", "output/manifests")
"""The folders that are counted on their own; the rest of the run directory is counted together."""
REST = "rest"
MINUTES_MIN = 4  # points that a slope needs


@dataclass
class Census:
    """Takes what a run takes up, again and again: give it to a driver before it starts."""

    period_s: float
    points: list[tuple[float, dict[str, float]]] = field(default_factory=list)  # at_s, figures

    def __call__(self, driver: Driver) -> None:
        every(driver, self.period_s, lambda: self._take(driver))

    def _take(self, driver: Driver) -> None:
        found = dict(_files(driver.directory.path))
        found |= _process("driver", [os.getpid()])
        found |= _process("slots", [m.hello.pid for m in driver.roster.members.values() if m.life])
        found |= _held(driver)
        found["time to resume, ms"] = _resume_ms(driver)
        self.points.append((driver.now_us() / 1e6, found))


def _files(run: Path) -> Iterator[tuple[str, float]]:
    """How many files, directories included, and how many bytes lie in each folder."""
    count: dict[str, int] = dict.fromkeys((*FOLDERS, REST), 0)
    size = dict(count)
    for at, folders, files in os.walk(run):
        folder = _folder(os.path.relpath(at, run))
        count[folder] += len(files) + len(folders)
        for name in files:
            try:
                size[folder] += os.stat(os.path.join(at, name)).st_size
            except FileNotFoundError:  # deleted this very moment
                count[folder] -= 1
    for folder, number in count.items():
        yield f"{folder}: files", number
        yield f"{folder}: kB", size[folder] / 1e3


def _folder(path: str) -> str:
    inside = [name for name in FOLDERS if path == name or path.startswith(f"{name}/")]
    return max(inside, key=len, default=REST)


def _process(name: str, pids: Sequence[int]) -> dict[str, float]:
    """Descriptors and memory of some processes; those that are just gone are left out."""
    there = [(memory, _descriptors(pid)) for pid in pids if (memory := memory_of(pid)) is not None]
    return {
        f"{name}: descriptors": sum(count for _, count in there),
        f"{name}: RSS, MB": sum(memory.rss for memory, _ in there) / 1e6,
        f"{name}: PSS, MB": sum(memory.pss for memory, _ in there) / 1e6,
    }


def _descriptors(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


def _held(driver: Driver) -> dict[str, float]:
    """How much the driver holds in memory, by what it is."""
    timeline = driver.timeline
    known = driver.engine.registry.metas.values()
    return {
        "driver: threads": threading.active_count(),
        "driver: Python objects": len(gc.get_objects()),
        "driver: seconds": len(timeline.seconds),
        "driver: happenings for figures": timeline.told,
        "driver: checkpoints in figures": timeline.checkpoints_known,
        "driver: checkpoints registered": sum(len(each) for each in known),
    }


def _resume_ms(driver: Driver) -> float:
    begun_s = time.monotonic()
    read_past(driver.directory, driver.job)
    return (time.monotonic() - begun_s) * 1e3


def slope_table(points: Sequence[tuple[float, Mapping[str, float]]], skip_s: float) -> list[str]:
    """The slope per hour of every figure after the first `skip_s` seconds, with its 95 % interval."""
    kept = [(at_s, figures) for at_s, figures in points if at_s >= skip_s]
    rows = []
    for name in kept[0][1] if kept else ():
        values = [figures[name] for _, figures in kept]
        if not any(values):
            continue
        line = slope_of([at_s / 3600 for at_s, _ in kept], values)
        rows.append(
            [
                name,
                f"{points[0][1][name]:,.1f}",
                f"{values[0]:,.1f}",
                f"{values[-1]:,.1f}",
                f"{line.value:+,.1f} ± {line.error:,.1f}",
                "yes" if line.flat else "**no**",
            ]
        )
    head = ["figure", "at first", f"after {skip_s:g} s", "at the end", "slope per hour", "flat"]
    return table(head, rows)
