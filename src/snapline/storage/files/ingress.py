"""Input as files: one file of rows per partition, and an object that says that all of it is there."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from snapline.batch import Batch, Schema, concat
from snapline.errors import UsageError
from snapline.ids import Millis
from snapline.storage.files.rows import RowReader, RowWriter
from snapline.storage.files.store import FileStore
from snapline.storage.memory import Timetable

_DESCRIPTION = "input"


def write_ingress(directory: Path, partitions: Sequence[Sequence[Batch]]) -> None:
    """Write an input: for each partition, its batches in order."""
    if not partitions or not all(partitions):
        raise UsageError("an input needs a partition, and each partition at least one batch")
    for number, batches in enumerate(partitions):
        rows = RowWriter(_path(directory, number), 0)
        for batch in batches:
            rows.append(batch)
        rows.sync()
        rows.close()
    description = {
        "schema": partitions[0][0].schema,
        "ends": [sum(len(batch) for batch in batches) for batches in partitions],
    }
    FileStore(directory).put(_DESCRIPTION, json.dumps(description).encode())


class FileIngress:
    """An `Ingress` over what `write_ingress` wrote."""

    def __init__(self, directory: Path) -> None:
        description = json.loads(FileStore(directory).get(_DESCRIPTION))
        self._schema: dict[str, str] = description["schema"]
        self._ends: list[int] = description["ends"]
        self._rows = [RowReader(_path(directory, number)) for number in range(len(self._ends))]
        self._times = [self._timetable(number) for number in range(len(self._ends))]

    def _timetable(self, partition: int) -> Timetable:
        self._rows[partition].refresh()
        times = [batch["time"] for batch in self._rows[partition].rows(0, self._ends[partition])]
        return Timetable(np.concatenate([np.zeros(0, np.int64), *times]))

    @property
    def schema(self) -> Schema:
        """The kinds of the columns."""
        return self._schema

    @property
    def partitions(self) -> int:
        """How many partitions there are."""
        return len(self._ends)

    def end(self, partition: int) -> int:
        """The number of records in the partition."""
        return self._ends[partition]

    def due_ms(self, partition: int, offset: int) -> Millis:
        """When the record at `offset` is due."""
        return self._times[partition].due_ms(offset)

    def due_through(self, partition: int, now_ms: Millis) -> int:
        """The number of records that are due by now."""
        return self._times[partition].due_through(now_ms)

    def read(self, partition: int, offset: int, stop: int) -> Batch:
        """Records offset <= n < stop."""
        stop = min(stop, self._ends[partition])
        if offset >= stop:
            return Batch.empty(self._schema)
        return concat(self._rows[partition].rows(offset, stop))

    def watermark(self, partition: int, offset: int) -> Millis:
        """No record at `offset` or later has a time below this."""
        return self._times[partition].watermark(offset)


def _path(directory: Path, partition: int) -> Path:
    return directory / f"partition-{partition}.rows"
