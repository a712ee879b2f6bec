"""The input and output of another system as the tables that a judge reads, in memory and as Parquet.

Events have `partition`, `offset` and `arrival` beside their own columns, outputs `position` and
`written`: so a witness can say where an event stood, when it came, and which rows of output are meant.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from snapline.batch import Batch, Schema, concat
from snapline.errors import UsageError
from snapline.storage.files.places import make_directory, make_file
from snapline.storage.parquet.arrow import from_arrow, kinds, to_spark


@dataclass(frozen=True, slots=True)
class SystemTables:
    """Input, output and late output of a run."""

    inputs: Batch | None  # None: the workload's judge makes it itself
    outputs: Mapping[str, Batch]  # by sink
    late: Batch | None  # None: the system has no such output

    @property
    def rows(self) -> dict[str, int]:
        """The number of rows that came out of each sink."""
        late = {} if self.late is None else {"late": len(self.late)}
        return {**{sink: len(batch) for sink, batch in self.outputs.items()}, **late}

    def save(self, directory: Path) -> None:
        """Write them as Parquet, each into a directory of its own."""
        named: Mapping[str, Sequence[Batch | None]] = {
            "input": [self.inputs],
            "output": [*self.outputs.values()],
            "late": [self.late],
        }
        for name, batches in named.items():
            make_directory(directory / name)
            for number, batch in enumerate(batches):
                if batch is not None and batch.columns:
                    table = pa.Table.from_batches([to_spark(batch)])
                    fd = make_file(directory / name / f"{number:06}.parquet", os.O_TRUNC)
                    with os.fdopen(fd, "wb") as file:
                        parquet.write_table(table, file)


def saved_tables(directory: Path, sink: str) -> SystemTables:
    """What `SystemTables.save` wrote of a workload with one sink. Raises UsageError."""
    inputs, outputs, late = (_whole(directory / name) for name in ("input", "output", "late"))
    rows = stamped(outputs or Batch({}, 0), directory / "output")
    return SystemTables(
        inputs, {sink: rows}, None if late is None else stamped(late, directory / "late")
    )


def _whole(directory: Path) -> Batch | None:
    parts = [from_arrow(part) for file in _files(directory) for part in _pieces(file)]
    return concat(parts) if parts else None


def stamped(batch: Batch, directory: Path) -> Batch:
    """The rows of a saved output, if they have the columns that `SystemTables.save` gave them."""
    for name in ("position", "written") if len(batch) else ():
        if name not in batch.columns:
            raise UsageError(f"{directory} has no column {name!r}: it was not written by a run")
    return batch


def saved_output(directory: Path) -> tuple[Schema | None, Iterator[Batch]]:
    """The output that `SystemTables.save` wrote: its schema, None if there are no rows, and batches."""
    files = _files(directory / "output")
    schema = kinds(parquet.read_schema(files[0])) if files else None
    return schema, (from_arrow(part) for file in files for part in _pieces(file))


def _files(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.parquet"))


def _pieces(file: Path) -> Iterator[pa.RecordBatch]:
    try:
        with parquet.ParquetFile(file) as opened:
            yield from opened.iter_batches()
    except (OSError, pa.ArrowException) as error:
        raise UsageError(f"{file} cannot be read: {error}") from error
