"""Writes input as directories of Parquet files, which appear by rename: whole or not at all.

DIR/input/STREAM/000017.parquet    records, in the order in which they were given
DIR/flush/STREAM/flush.parquet     one record that is no input, far in the future: it moves the watermark

A system that reads both (`DIR/{input,flush}/STREAM`) closes all windows at the end; whoever reads the input
alone finds nothing that is not input.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from snapline.batch import Batch, Column, Schema, Varlen
from snapline.ids import Millis
from snapline.storage.files.places import make_directory, whole_file
from snapline.storage.parquet.arrow import to_spark


class FileInput:
    """The input of one run."""

    def __init__(self, directory: Path, streams: tuple[str, ...]) -> None:
        self._directory = directory
        self._given = dict.fromkeys(streams, 0)
        for stream in streams:
            make_directory(directory / "input" / stream)

    def pattern(self, stream: str) -> str:
        """Where a stream and its flush are, in the form that Hadoop's file systems understand."""
        return str(self._directory / "{input,flush}" / stream)

    def give(self, stream: str, batch: Batch) -> None:
        """Write a batch as one more file of a stream."""
        number = self._given[stream]
        self._given[stream] = number + 1
        _write(batch, self._directory / "input" / stream / f"{number:06}.parquet")

    def flush(self, stream: str, schema: Schema, at_ms: Millis) -> None:
        """Write a record with this event time that is no input, to move the watermark."""
        home = self._directory / "flush" / stream
        make_directory(home)
        _write(_nothing(schema, at_ms), home / "flush.parquet")


def _write(batch: Batch, path: Path) -> None:
    """Write a file under a name with a dot, which readers ignore, and rename it when it is complete."""
    with whole_file(path) as file:
        parquet.write_table(pa.Table.from_batches([to_spark(batch)]), file)


def _nothing(schema: Schema, at_ms: Millis) -> Batch:
    zeros: dict[str, Column] = {
        name: Varlen.of("str", [""]) if kind == "str" else np.zeros(1, np.dtype(kind))
        for name, kind in schema.items()
    }
    return Batch({**zeros, "id": np.full(1, -1), "time": np.full(1, at_ms)})
