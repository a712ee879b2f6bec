"""SPADE's incremental checkpoint of a sliding window, as its paper has it: the baseline and the model.

One circular buffer per window (or per key, where windows are per key) divides it into groups of so many
rows, and has one position more than groups fill the window. A position stands for a file. At a
checkpoint every group that got rows since the last one is written whole, in its file; a group that has only
lost rows is not. When all rows of a group are gone, its file is used again. To restore, the files are read,
the oldest first, and what is more than the window holds is discarded.
"""

from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from typing import Any


class CircularBuffer:
    """The checkpoints of one window."""

    def __init__(self, window: int, group: int) -> None:
        self.window = window
        self.group = group
        self.rows: deque[Any] = deque(maxlen=window)
        self.count = 0  # rows so far
        self.saved = 0  # of which so many had come at the last checkpoint
        self.files: list[tuple[int, list[Any]] | None] = [None] * (-(-window // group) + 1)

    def insert(self, row: Any) -> None:
        """Let a row into the window, out of which the oldest one falls."""
        self.rows.append(row)
        self.count += 1

    def checkpoint(self) -> list[list[Any]]:
        """Write the groups that got rows and have any left; return what was written."""
        first = self.count - len(self.rows)  # the number of the oldest row
        written = []
        for group in range(max(self.saved, first) // self.group, -(-self.count // self.group)):
            start, stop = max(group * self.group, first), min((group + 1) * self.group, self.count)
            if stop > max(start, self.saved):
                rows = [self.rows[n - first] for n in range(start, stop)]
                self.files[group % len(self.files)] = group, rows
                written.append(rows)
        self.saved = self.count
        return written

    def restored(self) -> list[Any]:
        """The window that the files hold."""
        known = sorted(each for each in self.files if each is not None)
        last = known[-1][0] if known else 0
        groups = [rows for number, rows in known if number > last - len(self.files)]
        return [row for rows in groups for row in rows][-self.window :]


class BufferPerKey:
    """The checkpoints of windows per key: a circular buffer for each."""

    def __init__(self, window: int, group: int) -> None:
        self.window = window
        self.group = group
        self.buffers: dict[Hashable, CircularBuffer] = {}

    def insert(self, keys: Iterable[Hashable], rows: Sequence[Any]) -> None:
        """Let rows into the windows of their keys."""
        for key, row in zip(keys, rows, strict=True):
            if key not in self.buffers:
                self.buffers[key] = CircularBuffer(self.window, self.group)
            self.buffers[key].insert(row)

    def checkpoint(self) -> list[list[Any]]:
        """Write the groups of all windows that got rows."""
        return [rows for buffer in self.buffers.values() for rows in buffer.checkpoint()]
