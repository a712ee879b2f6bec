"""What a checkpoint of windows by rows writes: in groups as Snapline does it, and as SPADE's paper has it.

    python -m benchmarks.engine.groups
    python -m benchmarks.engine.groups --checkpoints 3                             # a trial

Rows have a key, two numbers and 70 bytes, as in the paper's experiments. A single window is full before the
first checkpoint is counted; windows per key have then seen 60,000 rows in all. The checkpoints are made by
the engine's own writer, into a store that counts bytes. The paper's layout writes the same rows in the
same form, a file per group. Bytes depend on no clock.
"""

import argparse
from collections.abc import Callable, Iterator
from itertools import islice
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.common.pages import Session, call, parser_of, table
from benchmarks.engine.literal import BufferPerKey
from snapline.batch import Batch
from snapline.core.effects import Snapshot
from snapline.core.messages import CheckpointMeta
from snapline.dataflow.operators.join import LEFT, RIGHT
from snapline.dataflow.operators.operator import Capture
from snapline.dataflow.sliding.arena import ORDINAL
from snapline.dataflow.sliding.row_join import RowJoinPlan, SlidingRowJoin
from snapline.engine.control import Report, Stored
from snapline.engine.groups.content import Content
from snapline.engine.shell import Ticket
from snapline.engine.slot.checkpoints import CheckpointWriter
from snapline.ids import TaskId
from snapline.storage.api import Life
from snapline.storage.codec import Pieces

WINDOWS = (8_192, 32_768, 131_072)
GROUPS = (64, 256, 1_024, 4_096, 0)
KEYED_GROUPS = (32, 64, 128, 256, 0)
KEYS, KEYED_WINDOW, FRESH = 600, 1_024, 1_000
ROW_BYTES = 4 * 8 + 70  # key, time, value and ordinal, and the payload
TASK = TaskId("join/0")
HOW = (
    f"{FRESH:,} rows of {ROW_BYTES} bytes come between two checkpoints. *Window*: rows that it holds, and",
    "what they weigh. *KB*: written per checkpoint, index and all; *objects*: written; *held*: groups that",
    "belong to a checkpoint. *Paper*: the same with a circular buffer per window, or per key. *Group* 0:",
    "as many rows as the operator finds right. Nothing here depends on a clock, or on other load.",
)
HEAD = ("window", "window KB", "group", "KB", "objects", "held", "paper KB", "paper objects")
KEYED_HEAD = ("keys", "group", "KB", "objects", "held", "paper KB", "paper objects")


class Shell:
    """A slot's shell whose store only counts, and answers at once."""

    def __init__(self) -> None:
        self.done: list[Ticket] = []
        self.bytes, self.objects = 0, 0
        self.counted: list[Stored] = []

    def store(self, ticket: Ticket, key: str, data: Callable[[], Pieces]) -> None:
        self.bytes += data().size
        self.objects += 1
        self.done.append(ticket)

    def sync(self, ticket: Ticket, file: Any) -> None:
        self.done.append(ticket)

    def report(self, report: Report) -> None:
        assert isinstance(report, Stored)
        self.counted.append(report)

    def captured(self, task: TaskId, checkpoint: int) -> None: ...


class Saved:
    """A task with a join of windows by rows, to one side of which rows come."""

    def __init__(self, window: int, group: int, into: Shell | None = None) -> None:
        sides = {LEFT: ("key",), RIGHT: ("key",)}
        self.operator = SlidingRowJoin(RowJoinPlan(sides, {LEFT: window, RIGHT: window}))
        self.operator.by_group(group)
        self.shell = into or Shell()
        shell: Any = self.shell
        log: Any = object()
        self.writer = CheckpointWriter(Life(TASK, 1, 1), shell, log, None, 8, 100)
        self.number = 0

    def capture(self, *, full: bool) -> Capture:
        return self.operator.capture(full=full)

    def meta(self, effect: Snapshot) -> CheckpointMeta:
        return CheckpointMeta(TASK, effect.checkpoint, epoch=1, incarnation=1)

    def checkpoint(self) -> tuple[int, int, int]:
        """Take one; return the bytes and objects written, and the objects that belong to it."""
        bytes_before, objects_before = self.shell.bytes, self.shell.objects
        self.number += 1
        self.writer.take(self, Snapshot(self.number))
        while self.shell.done:
            self.writer.done(self.shell.done.pop(0))
        held = self.shell.counted[-1].meta.groups
        return self.shell.bytes - bytes_before, self.shell.objects - objects_before, held


def rows_with(keys: np.ndarray[Any, Any], first: int) -> Batch:
    """Rows with these keys, the first of which has this number."""
    n = np.arange(first, first + len(keys), dtype=np.int64)
    return Batch({"key": keys, "time": n, "value": n * 7, "payload": n.astype("S70")})


def batches(keys: Callable[[int], np.ndarray[Any, Any]]) -> Iterator[Batch]:
    """Rows without end, some at a time; `keys` draws the keys of so many."""
    at = 0
    while True:
        yield rows_with(keys(FRESH), at)
        at += FRESH


def bytes_of(rows: int) -> int:
    """What a group of so many rows weighs as an object."""
    some = next(batches(lambda count: np.zeros(count, np.int64))).take(np.zeros(rows, np.int64))
    kept = some.with_columns(**{ORDINAL: np.zeros(rows, np.int64)})
    return Content(Capture(True, {LEFT: kept}), b"", ())().size


def measured(
    window: int, group: int, keys: Callable[[int], np.ndarray[Any, Any]], warm: int, count: int
) -> list[str]:
    """Kilobytes and objects of a checkpoint, ours and the paper's."""
    ours, paper = Saved(window, group), BufferPerKey(window, group or 1)
    found, literal = [], []
    for number, batch in enumerate(islice(batches(keys), warm + count)):
        ours.operator.process(LEFT, batch)
        taken = ours.checkpoint()
        if number >= warm:
            found.append(taken)
        if group:
            paper.insert(batch["key"].tolist(), range(FRESH))
            written = paper.checkpoint()
            if number >= warm:
                literal.append((sum(bytes_of(len(rows)) for rows in written), len(written)))
    size, objects, held = (fmean(column) for column in zip(*found, strict=True))
    shown = [f"{group:,}", f"{size / 1000:,.0f}", f"{objects:.1f}", f"{held:,.0f}"]
    if not literal:
        return [*shown, "", ""]
    size, objects = (fmean(column) for column in zip(*literal, strict=True))
    return [*shown, f"{size / 1000:,.0f}", f"{objects:.1f}"]


def one_key(count: int) -> np.ndarray[Any, Any]:
    return np.zeros(count, np.int64)


def drawn_keys(zipf: bool) -> Callable[[int], np.ndarray[Any, Any]]:
    dice = np.random.default_rng(17)
    weights = 1 / np.arange(1, KEYS + 1) if zipf else np.ones(KEYS)
    shares = weights / weights.sum()
    return lambda count: dice.choice(KEYS, count, p=shares)


def asked() -> argparse.Namespace:
    parser = parser_of(__doc__, "groups.md")
    parser.add_argument("--checkpoints", type=int, default=20, help="of each case")
    return parser.parse_args()


def main() -> None:
    options, session = asked(), Session()
    rows, keyed = [], []
    for window in WINDOWS:
        for group in GROUPS:
            found = measured(window, group, one_key, window // FRESH + 2, options.checkpoints)
            rows.append([f"{window:,}", f"{bytes_of(window) / 1000:,.0f}", *found])
            session.say("  ".join(rows[-1]))
    for name, zipf in (("even", False), ("Zipf", True)):
        for group in KEYED_GROUPS:
            found = measured(KEYED_WINDOW, group, drawn_keys(zipf), 60, options.checkpoints)
            keyed.append([name, *found])
            session.say("  ".join(keyed[-1]))
    title = f"{KEYS} keys with windows of {KEYED_WINDOW:,} rows each:"
    parts = [table(HEAD, rows), [title], table(KEYED_HEAD, keyed)]
    session.write(options.to, "What a checkpoint of windows by rows writes", HOW, parts)


if __name__ == "__main__":
    call(main)
