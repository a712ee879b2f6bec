"""Reads the output of a run while it becomes public: every row once, in steps of bounded size.

Where lines are committed, a step is what one manifest has published. Rows that a rollback took back are in
no manifest, and are never seen. Where nothing is ever committed, output is public as it is written, and a
step is what was written within a second. The steps are the same whether the run goes on or was over long
ago, so reading a finished run needs no more memory.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Final, TypeAlias

import numpy as np

from snapline.batch import Batch, concat
from snapline.ids import Millis, TaskId
from snapline.rundir.directory import RunDirectory
from snapline.rundir.output_rows import POSITION_BITS
from snapline.storage.api import OutputPiece, View, WrittenRows
from snapline.workload.lineage.oracle import LATE, SINK

_SECOND_MS: Final = 1_000

_Part: TypeAlias = tuple[Millis, TaskId, str, WrittenRows]  # time of writing, task, file, rows


@dataclass(frozen=True, slots=True)
class PublicStep:
    """Rows that became public together, with their `position`, as in `reader.read_sinks`."""

    outputs: Batch
    late: Batch
    written_ms: Millis  # when the newest of them was written, since 1970


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Consecutive rows of one file, and where they stand in the output of their task."""

    file: str
    row: int  # the number of the first row in the file
    position: int  # the position of that row in the output
    count: int


class Following:
    """Reads the sinks `counts` and `late` of a run directory, which may still be written."""

    def __init__(self, directory: RunDirectory, view: View) -> None:
        self._output: Final = directory.output
        self._follower: Final = self._output.follow()
        self._steps: Final = self._manifests if view == "committed" else self._seconds
        self._stretches: dict[TaskId, list[_Stretch]] = {}

    def steps(self) -> Iterator[PublicStep]:
        """The steps that have become public since the last call."""
        return self._steps()

    def _manifests(self) -> Iterator[PublicStep]:
        for extents in self._follower.published():
            parts = [
                (written.at_ms, task, extent.file, written)
                for task, extent in extents.items()
                if _sink(task) in (SINK, LATE)
                for written in self._follower.read(
                    OutputPiece(extent.file, extent.start, extent.stop)
                )
            ]
            if parts:
                yield self._step(parts)

    def _seconds(self) -> Iterator[PublicStep]:
        tasks = [self._parts(task) for task in self._output.tasks() if _sink(task) in (SINK, LATE)]
        merged = heapq.merge(*tasks, key=itemgetter(0))
        for _, parts in groupby(merged, lambda part: part[0] // _SECOND_MS):
            yield self._step(parts)

    def _parts(self, task: TaskId) -> Iterator[_Part]:
        for piece in self._output.pieces(task, "uncommitted"):
            for written in self._follower.read(piece):
                yield written.at_ms, task, piece.file, written

    def _step(self, parts: Iterable[_Part]) -> PublicStep:
        rows: dict[str, list[Batch]] = {SINK: [], LATE: []}
        newest = 0
        for at_ms, task, file, written in parts:
            newest = max(newest, at_ms)
            rows[_sink(task)].append(self._placed(task, file, written))
        whole = {sink: concat(each) if each else Batch({}, 0) for sink, each in rows.items()}
        return PublicStep(whole[SINK], whole[LATE], newest)

    def _placed(self, task: TaskId, file: str, written: WrittenRows) -> Batch:
        """Give the rows of a task their positions, in the order in which they come."""
        count, stretches = len(written.rows), self._stretches.setdefault(task, [])
        first = int(task.rpartition("/")[2]) << POSITION_BITS
        if stretches:
            last = stretches[-1]
            first = last.position + last.count
            if (last.file, last.row + last.count) == (file, written.first):
                stretches[-1] = _Stretch(file, last.row, last.position, last.count + count)
            else:
                stretches.append(_Stretch(file, written.first, first, count))
        else:
            stretches.append(_Stretch(file, written.first, first, count))
        return written.rows.with_columns(position=np.arange(first, first + count, dtype=np.int64))

    def written_ms(self, sink: str, position: int) -> Millis:
        """When the row at a position was written, since 1970."""
        task = TaskId(f"{sink}/{position >> POSITION_BITS}")
        for stretch in self._stretches[task]:
            row = stretch.row + position - stretch.position
            if 0 <= position - stretch.position < stretch.count:
                return next(self._output.read(OutputPiece(stretch.file, row, row + 1))).at_ms
        raise LookupError(f"{sink} has no row at {position}")


def _sink(task: TaskId) -> str:
    return task.rpartition("/")[0]
