"""Whether checkpoints of windows per key keep their interval if keys are as uneven as Zipf's law has them.

    python -m benchmarks.engine.zipf
    python -m benchmarks.engine.zipf --checkpoints 3                               # a trial

SPADE's paper has 600 keys with windows of 1,024 rows, about 2,000 rows a second, and a checkpoint every
second, which a network file system takes. With keys by Zipf's law its checkpoints came every six seconds.
Here the same rows are written in both layouts, one object after the other: in groups that all keys share,
as Snapline does it, and with a circular buffer of groups for each key, as in the paper. Each object is a
file that is synced, and then takes so many milliseconds more, which stand for the way to another machine.
A checkpoint begins when it is due and the one before is written; the rows that come meanwhile are in it.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import numpy as np

from benchmarks.common.pages import Session, call, parser_of, table
from benchmarks.engine.groups import (
    KEYED_WINDOW,
    KEYS,
    Saved,
    Shell,
    bytes_of,
    drawn_keys,
    rows_with,
)
from benchmarks.engine.literal import BufferPerKey
from snapline.batch import Batch
from snapline.dataflow.operators.join import LEFT
from snapline.engine.shell import Ticket
from snapline.storage.codec import Pieces
from snapline.storage.files.store import FileStore

INTERVAL_S, ROWS_PER_S, GROUP = 1.0, 2_000, 64
DELAYS_MS = (0, 5, 20)
WARM_ROWS = 60_000
HOW = (
    f"{KEYS} keys with windows of {KEYED_WINDOW:,} rows, groups of {GROUP}, {ROWS_PER_S:,} rows a second,",
    "a checkpoint every second. *Object*: how much longer than on this disk each takes to be stored.",
    "*Interval*: from the beginning of a checkpoint to that of the next. *Objects*: written by each.",
)


class Disk:
    """A store of files, each of which takes so many milliseconds more."""

    def __init__(self, folder: Path) -> None:
        self._store = FileStore(folder)
        self.delay_ms = 0
        self.objects = 0

    def put(self, data: Pieces | bytes) -> None:
        self.objects += 1
        self._store.put(f"object/{self.objects}", data)
        time.sleep(self.delay_ms / 1000)


class DiskShell(Shell):
    """A slot's shell whose store is a disk."""

    def __init__(self, disk: Disk) -> None:
        super().__init__()
        self._disk = disk

    def store(self, ticket: Ticket, key: str, data: Callable[[], Pieces]) -> None:
        self._disk.put(data())
        self.done.append(ticket)


class Ours:
    """Windows whose rows are in groups that all keys share."""

    def __init__(self, disk: Disk) -> None:
        self._saved = Saved(KEYED_WINDOW, GROUP, DiskShell(disk))

    def insert(self, rows: Batch) -> None:
        self._saved.operator.process(LEFT, rows)

    def checkpoint(self) -> None:
        self._saved.checkpoint()


class Paper:
    """Windows with a circular buffer of groups for each key."""

    def __init__(self, disk: Disk) -> None:
        self._buffers = BufferPerKey(KEYED_WINDOW, GROUP)
        self._disk = disk

    def insert(self, rows: Batch) -> None:
        self._buffers.insert(rows["key"].tolist(), range(len(rows)))

    def checkpoint(self) -> None:
        for rows in self._buffers.checkpoint():
            self._disk.put(bytes(bytes_of(len(rows))))


def measured(
    layout: Callable[[Disk], Ours | Paper], delay_ms: int, zipf: bool, count: int
) -> tuple[float, float]:
    """The interval that is achieved, in seconds, and the objects of a checkpoint."""
    keys, at = drawn_keys(zipf), WARM_ROWS
    with tempfile.TemporaryDirectory(prefix="snapline-zipf-") as folder:
        disk = Disk(Path(folder))
        windows = layout(disk)
        windows.insert(rows_with(keys(WARM_ROWS), 0))
        windows.checkpoint()
        disk.delay_ms, interval_s, found = delay_ms, INTERVAL_S, []
        for _ in range(count):
            fresh = round(ROWS_PER_S * interval_s)
            windows.insert(rows_with(keys(fresh), at))
            at += fresh
            objects, begun_s = disk.objects, time.monotonic()
            windows.checkpoint()
            interval_s = max(INTERVAL_S, time.monotonic() - begun_s)
            found.append((interval_s, disk.objects - objects))
    # The first checkpoints have the rows of one interval, until a longer one shows in them.
    later = np.array(found[count // 2 :])
    return fmean(later[:, 0]), fmean(later[:, 1])


def asked() -> argparse.Namespace:
    parser = parser_of(__doc__, "zipf.md")
    parser.add_argument("--checkpoints", type=int, default=8, help="of each case")
    return parser.parse_args()


def main() -> None:
    options, session = asked(), Session()
    rows = []
    for name, zipf in (("even", False), ("Zipf", True)):
        for delay_ms in DELAYS_MS:
            row = [name, f"{delay_ms} ms"]
            for layout in (Ours, Paper):
                interval_s, objects = measured(layout, delay_ms, zipf, options.checkpoints)
                kept = f"{interval_s:.2f} s" if interval_s > INTERVAL_S else f"{INTERVAL_S:.0f} s"
                row += [kept, f"{objects:.0f}"]
            session.say("  ".join(row))
            rows.append(row)
    head = ("keys", "object", "our interval", "objects", "paper's interval", "objects")
    title = "Whether checkpoints keep their interval"
    session.write(options.to, title, HOW, [table(head, rows)])


if __name__ == "__main__":
    call(main)
