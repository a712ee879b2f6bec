"""What a long run is looked at for: figures of blocks of seconds, and tables of them.

Slots write a line a second (`slot_probe.py`), the driver knows what was read and written in each second,
and the logs are there to be measured. All is cut into blocks, and every figure is a function of a block.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

import numpy as np

from benchmarks.common.pages import table
from benchmarks.common.real_run import BATCH, every
from benchmarks.endurance.slot_probe import Line
from snapline.experiments.rates.slopes import slope_of
from snapline.metrics.second import Second
from snapline.runtime.driver.driver import Driver


@dataclass
class Watch:
    """Keeps what slots and files said, while the run's directory is there."""

    lines: dict[str, list[Line]] = field(default_factory=dict)  # by process
    log_bytes: list[tuple[float, int]] = field(default_factory=list)

    def __call__(self, driver: Driver) -> None:
        every(driver, 1.0, lambda: self._look(driver))

    def _look(self, driver: Driver) -> None:
        path = driver.directory.path
        self.log_bytes.append((driver.now_us() / 1e6, _on_disk(path / "logs")))
        for file in (path / "probe").glob("*.jsonl"):
            told = file.read_text().splitlines()
            known = self.lines.setdefault(file.stem, [])
            known += [Line(**json.loads(text)) for text in told[len(known) :]]

    @property
    def state(self) -> int:
        """The bytes of all states, at the end."""
        return sum(lines[-1].state for lines in self.lines.values() if lines)


def _on_disk(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_blocks * 512
        except FileNotFoundError:  # cut off this very moment
            continue
    return total


@dataclass(frozen=True)
class Block:
    """Ten seconds of a run, as far as it is whole."""

    at_s: float
    seconds: Sequence[Second]
    slots: Sequence[Sequence[Line]]  # by process
    log_bytes: Sequence[int]

    def lines(self) -> Iterator[Line]:
        return (line for lines in self.slots for line in lines)

    def mean(self, take: Callable[[Line], Sequence[float]]) -> float:
        """The mean of the times of all snapshots; not a number if there were none."""
        found = [value for line in self.lines() for value in take(line)]
        return fmean(found) if found else float("nan")


def blocks_of(watch: Watch, seconds: Sequence[Second], size_s: int) -> list[Block]:
    """The run, cut into blocks."""
    cut = []
    for begin in range(0, int(seconds[-1].at_s) - size_s + 1, size_s):
        inside = range(begin, begin + size_s)
        slots = [
            [line for line in lines if int(line.at_s) in inside] for lines in watch.lines.values()
        ]
        logs = [size for at_s, size in watch.log_bytes if int(at_s) in inside]
        if all(len(lines) > 1 for lines in slots) and logs:
            those = [second for second in seconds if second.at_s in inside]
            cut.append(Block(begin + size_s / 2, those, slots, logs))
    return cut


def cpu_us(block: Block) -> float:
    """CPU time of all slots for 4,000 records."""
    read = fmean(second.read for second in block.seconds)
    per_s = sum(
        (lines[-1].cpu_s - lines[0].cpu_s) / (lines[-1].at_s - lines[0].at_s)
        for lines in block.slots
    )
    return per_s * 1e6 / (read / BATCH)


def pass_us(block: Block) -> float:
    """CPU time for one pass of a slot's loop: one batch, however large, through one task."""
    spent_s = sum(lines[-1].cpu_s - lines[0].cpu_s for lines in block.slots)
    return spent_s * 1e6 / max(sum(lines[-1].passes - lines[0].passes for lines in block.slots), 1)


def _percentile(block: Block, name: str) -> float:
    found = [getattr(second, name) for second in block.seconds if second.written]
    return fmean(found) if found else float("nan")


def _beyond(block: Block) -> float:
    return sum(fmean(line.rss - line.state for line in lines) for lines in block.slots) / 1e6


def _per_row(block: Block) -> float:
    rows = sum(line.delta_rows for line in block.lines())
    return sum(line.delta_bytes for line in block.lines()) / rows if rows else float("nan")


def _stored(block: Block) -> float:
    read = sum(second.read for second in block.seconds)
    return sum(second.volume.snapshots for second in block.seconds) / max(read, 1)


FIGURES: dict[str, Callable[[Block], float]] = {
    "CPU us per batch taken": pass_us,
    "CPU us per 4,000 records": cpu_us,
    "capture, us": lambda block: block.mean(lambda line: line.capture_us),
    "blocked by a delta, us": lambda block: block.mean(lambda line: line.delta_us),
    "blocked by a full capture, us": lambda block: block.mean(lambda line: line.full_us),
    "alignment, ms": lambda block: block.mean(lambda line: [us / 1e3 for us in line.align_us]),
    "RSS beyond the state, MB": _beyond,
    "message logs on disk, MB": lambda block: fmean(block.log_bytes) / 1e6,
    "delta bytes per changed row": _per_row,
    "snapshot bytes stored per record": _stored,
    "p50, ms": lambda block: _percentile(block, "p50_ms"),
    "p99, ms (mean of seconds)": lambda block: _percentile(block, "p99_ms"),
}


def slope_table(blocks: Sequence[Block]) -> list[str]:
    """Every figure that there is, with its slope."""
    rows = []
    for name, figure in FIGURES.items():
        points = [(block.at_s / 60, figure(block)) for block in blocks]
        there = [(at, value) for at, value in points if not np.isnan(value)]
        if len(there) < 4 or not any(value for _, value in there):
            continue
        line = slope_of(*zip(*there, strict=True))
        rows.append(
            [
                name,
                f"{line.mean:,.2f}",
                f"{line.value:+,.3f} ± {line.error:,.3f}",
                f"{line.relative(line.value):+.2f} % ± {abs(line.relative(line.error)):.2f} %",
                "yes" if line.flat else "**no**",
            ]
        )
    return table(["figure", "mean", "slope per minute", "of the mean", "flat"], rows)


def minute_table(blocks: Sequence[Block]) -> list[str]:
    """What the figures were, minute by minute."""
    rows = []
    for minute in sorted({int(block.at_s // 60) for block in blocks}):
        inside = [block for block in blocks if int(block.at_s // 60) == minute]
        cells = []
        for figure in FIGURES.values():
            values = [value for block in inside if not np.isnan(value := figure(block))]
            cells.append(f"{fmean(values):,.1f}" if values else "-")
        state = sum(lines[-1].state for lines in inside[-1].slots) / 1e6
        rows.append([minute + 1, f"{state:,.0f}", *cells])
    return table(["minute", "state MB", *FIGURES], rows)
