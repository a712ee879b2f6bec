"""How long a capture of much state holds its operator up, and what is left to do beside it.

The join of q3 and the count of q12 are filled with so many rows, in this process, with the records of the
benchmark. Then, again and again, some more records come and the operator is captured: what has changed, and
everything. To *capture* blocks the operator; to *encode* what was captured is done by another thread.
"""

import time
from collections.abc import Callable
from statistics import median

import numpy as np

from benchmarks.common.pages import Session, table
from benchmarks.common.snapline_side import load_of
from snapline.batch import Batch
from snapline.dataflow.operators.join import LEFT, RIGHT, Join
from snapline.dataflow.operators.operator import IN, Operator
from snapline.dataflow.operators.window import Tumbling
from snapline.dataflow.operators.window_count import WindowCount
from snapline.storage.codec import encode_snapshot

SIZES = (100_000, 1_000_000, 3_000_000)
CHANGED = 5_000  # records between two captures
REPEATS = 5
STEP = 1 << 16
HOW = (
    f"Operators in one process, {CHANGED:,} records between two captures, medians of {REPEATS} (highest).",
    "*Blocked*: the capture itself. *Encode*: to bytes, done beside the operator.",
)


class FilledJoin:
    """The join of q3, with the records of the benchmark; all of them stay."""

    name = "join of q3"

    def __init__(self, rows: int) -> None:
        load = load_of("q3", 4 * (rows + 2 * REPEATS * CHANGED), 1)
        self._sides = {LEFT: load.auctions, RIGHT: load.persons}
        self._offsets = dict.fromkeys(self._sides, 0)
        self.operator: Operator = Join(("seller",), ("person",))
        self.add(rows)

    def add(self, rows: int) -> None:
        for side, share in ((LEFT, 3), (RIGHT, 1)):  # as they come: three auctions for a person
            source, left = self._sides[side], rows * share // 4
            while left > 0:
                begin = self._offsets[side]
                batch = source.make(0, begin, begin + min(STEP, left))
                self._offsets[side] += batch.length
                left -= batch.length
                self.operator.process(side, batch)


class FilledCount:
    """The count of q12, in one window, with as many bidders."""

    name = "count of q12"

    def __init__(self, rows: int) -> None:
        self.operator: Operator = WindowCount(("bidder",), Tumbling(1 << 40, "time", 0))
        self._rows = rows
        self._dice = np.random.default_rng(1)
        for begin in range(0, rows, STEP):
            self._put(np.arange(begin, min(begin + STEP, rows)))

    def add(self, rows: int) -> None:
        self._put(self._dice.integers(0, self._rows, rows))

    def _put(self, bidders: np.ndarray) -> None:
        times = np.zeros(len(bidders), np.int64)
        self.operator.process(IN, Batch({"bidder": bidders, "time": times}))


Filled = FilledJoin | FilledCount


def timed(act: Callable[[], object]) -> float:
    """Milliseconds."""
    begin_s = time.perf_counter()
    act()
    return (time.perf_counter() - begin_s) * 1e3


def captured(filled: Filled, *, full: bool) -> tuple[float, float, int]:
    """Milliseconds to capture, and to encode with the digest, and bytes."""
    filled.add(CHANGED)
    begin_s = time.perf_counter()
    capture = filled.operator.capture(full=full)
    blocked_ms = (time.perf_counter() - begin_s) * 1e3
    encode_ms = timed(lambda: encode_snapshot(capture.full, capture.parts, b"", ()).digest)
    return blocked_ms, encode_ms, sum(part.nbytes for part in capture.parts.values())


def measure(session: Session) -> list[str]:
    """Both operators, at all sizes."""
    rows = []
    for fill in (FilledJoin, FilledCount):
        for size in SIZES:
            filled: Filled = fill(size)
            filled.operator.capture(full=True)
            for full in (False, True):
                found = [captured(filled, full=full) for _ in range(REPEATS)]
                blocked, encode, sizes = zip(*found, strict=True)
                rows.append(
                    [
                        fill.name,
                        f"{size:,}",
                        "full" if full else "delta",
                        f"{median(blocked):.2f} ({max(blocked):.2f})",
                        f"{median(encode):.1f} ({max(encode):.1f})",
                        f"{median(sizes) / 1e6:.1f}",
                    ]
                )
                session.say("  ".join(rows[-1]))
    head = ["operator", "rows", "capture", "blocked ms", "encode ms", "MB"]
    return table(head, rows)
