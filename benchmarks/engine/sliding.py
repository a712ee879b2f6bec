"""What a batch costs in sliding windows of several sizes, and whether it stays so, in one process.

    python -m benchmarks.engine.sliding --batches 20000
    python -m benchmarks.engine.sliding --batches 800                               # a trial

Each operator computes count, sum, minimum and maximum of batches of 4,000 records with 1,000 keys, windows
by rows also without a key. Windows by time close once in ten batches. Before an operator is measured it has
seen twice as much as its windows hold, and while it is, it is captured after every tenth batch. The figures
are CPU times. The slope goes over the batches of the run, in parts of equal length.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from benchmarks.common.pages import Session, call, parser_of, table
from snapline.batch import Batch
from snapline.dataflow.operators.operator import IN, Operator
from snapline.dataflow.sliding.panes import Sliding
from snapline.dataflow.sliding.plan import SlidingAggregate, SlidingPlan
from snapline.dataflow.sliding.row_windows import LastRows, SlidingRowWindows
from snapline.dataflow.sliding.time_windows import SlidingTimeWindows
from snapline.experiments.rates.slopes import slope_of
from snapline.kernels import cache

RECORDS, KEYS = 4_000, 1_000
EVERY_MS = 1_000  # ten batches
BATCH_MS = EVERY_MS // 10
PARTS = 20  # of a run, each of which is a point of its slope
PANES = (10, 60, 600)
ROWS = (128, 1_024, 8_192)
ALL_ROWS = (8_192, 32_768, 131_072)
HOW = (
    f"One process, batches of {RECORDS:,} records with {KEYS:,} keys; count, sum, min and max. *us*: CPU",
    "time of a batch, with its share of the windows that close (one in ten batches) and of the blocks that",
    "fill; *highest*: of a part of the run. *slope*: over the run, in percent of the mean, with its 95 %",
    "interval. *delta*: bytes of a capture after ten batches, and how long it blocks.",
)
HEAD = ("windows", "size", "us", "highest", "slope over the run", "flat", "delta KB", "blocked us")


@dataclass(frozen=True)
class Case:
    """An operator and its size."""

    name: str
    size: int  # panes or rows
    warm_up: int  # batches that fill its windows twice
    keys: tuple[str, ...] = ("key",)

    def operator(self) -> Operator:
        aggregates: dict[str, SlidingAggregate] = {
            "n": "count",
            "total": ("sum", "value"),
            "least": ("min", "value"),
            "most": ("max", "value"),
        }
        if self.name.startswith("by time"):
            plan = SlidingPlan.of(self.keys, aggregates, ("window", "time"), "time")
            return SlidingTimeWindows(plan, Sliding(self.size * EVERY_MS, EVERY_MS))
        return SlidingRowWindows(
            SlidingPlan.of(self.keys, aggregates, ("time",)), LastRows(self.size)
        )


def cases() -> Iterator[Case]:
    for panes in PANES:
        yield Case("by time, per key", panes, 20 * panes)
    for rows in ROWS:
        yield Case("by rows, per key", rows, 2 * rows * KEYS // RECORDS)
    for rows in ALL_ROWS:
        yield Case("by rows, over all", rows, max(2 * rows // RECORDS, 1), ())


class Fed:
    """An operator that is given one batch after the other."""

    def __init__(self, case: Case) -> None:
        dice = np.random.default_rng(1)
        self.operator = case.operator()
        self._keys = dice.integers(0, KEYS, (16, RECORDS))
        self._values = dice.integers(0, 1 << 30, (16, RECORDS))
        self._steps = np.sort(dice.integers(0, BATCH_MS, RECORDS))
        self._given = 0

    def feed(self) -> float:
        """Give the next batch, and the watermark behind it; microseconds of CPU."""
        n, now_ms = self._given % 16, self._given * BATCH_MS
        self._given += 1
        columns = {"key": self._keys[n], "value": self._values[n], "time": self._steps + now_ms}
        batch = Batch(columns, RECORDS)
        begin_ns = time.thread_time_ns()
        self.operator.process(IN, batch)
        self.operator.on_watermark(now_ms + BATCH_MS)
        return (time.thread_time_ns() - begin_ns) / 1e3

    def capture(self) -> tuple[float, float]:
        """Microseconds that a delta blocks, and its kilobytes."""
        begin_ns = time.thread_time_ns()
        delta = self.operator.capture(full=False)
        spent = (time.thread_time_ns() - begin_ns) / 1e3
        return spent, sum(part.nbytes for part in delta.parts.values()) / 1e3


def measured(case: Case, batches: int) -> list[object]:
    fed = Fed(case)
    for _ in range(case.warm_up):
        fed.feed()
    fed.operator.capture(full=True)
    costs, blocked, sizes = [], [], []
    for number in range(batches):
        costs.append(fed.feed())
        if number % 10 == 9:
            spent, size = fed.capture()
            blocked.append(spent)
            sizes.append(size)
    parts = [fmean(part) for part in np.array_split(np.array(costs), PARTS)]
    slope = slope_of(range(PARTS), [float(part) for part in parts])
    run = PARTS * slope.relative(slope.value), PARTS * slope.relative(slope.error)
    return [
        case.name,
        f"{case.size:,} {'panes' if 'time' in case.name else 'rows'}",
        f"{slope.mean:,.0f}",
        f"{max(parts):,.0f}",
        f"{run[0]:+.1f} % ± {abs(run[1]):.1f} %",
        "yes" if slope.flat else "**no**",
        f"{fmean(sizes):,.0f}",
        f"{fmean(blocked):,.0f}",
    ]


def asked() -> argparse.Namespace:
    parser = parser_of(__doc__, "sliding.md")
    parser.add_argument("--batches", type=int, default=6_000, help="of each operator")
    return parser.parse_args()


def main() -> None:
    options, session = asked(), Session()
    how = (
        *HOW,
        f"Kernels: {'compiled' if cache.load() else 'numpy'}; {options.batches:,} batches each.",
    )
    rows = []
    for case in cases():
        rows.append(measured(case, options.batches))
        session.say("  ".join(map(str, rows[-1])))
    session.write(options.to, "What a batch costs in sliding windows", how, [table(HEAD, rows)])


if __name__ == "__main__":
    call(main)
