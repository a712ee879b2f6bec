"""What goes in and what came out, as the tables that a judge reads, in memory and as Parquet.

Events have `partition`, `offset` and `arrival` beside their own columns, outputs `position` and
`written`: so a witness can say where an event stood, when it came, and which rows of output are meant.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from snapline.batch import Batch, Schema, concat
from snapline.errors import UsageError
from snapline.runtime.arrow import from_arrow, kinds, to_spark
from snapline.systems.base import System, Written
from snapline.workload import WORKLOADS
from snapline.workload.base import Params


@dataclass(frozen=True, slots=True)
class Tables:
    """Input, output and late output of a run."""

    inputs: Batch | None  # None: the workload's judge makes it itself
    outputs: Mapping[str, Batch]  # by sink
    late: Batch | None  # None: the system has no such output

    @property
    def rows(self) -> dict[str, int]:
        """How much came out of each sink."""
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
            (directory / name).mkdir(exist_ok=True)
            for number, batch in enumerate(batches):
                if batch is not None and batch.columns:
                    table = pa.Table.from_batches([to_spark(batch)])
                    parquet.write_table(table, directory / name / f"{number:06}.parquet")


def tables_of(flow: str, params: Params, system: System, origin_s: float) -> Tables:
    """The tables of a run that is over; `origin_s` is when input began to be due."""
    outputs = {sink: _stamped(parts, origin_s) for sink, parts in system.output().items()}
    late = system.late_output()
    lineage = WORKLOADS[flow].lineage
    inputs = None if lineage is None else lineage(params).events()
    return Tables(inputs, outputs, None if late is None else _stamped(late, origin_s))


def _stamped(parts: Sequence[Written], origin_s: float) -> Batch:
    """All rows, numbered, each with the time at which it was written."""
    if not parts:
        return Batch({}, 0)
    lengths = [len(part.rows) for part in parts]
    written = np.array([round((part.at_s - origin_s) * 1000) for part in parts], np.int64)
    rows = concat([part.rows for part in parts])
    position = np.arange(len(rows), dtype=np.int64)
    return rows.with_columns(position=position, written=np.repeat(written, lengths))


def saved_tables(directory: Path, sink: str) -> Tables:
    """What `Tables.save` wrote of a workload with one sink. Raises UsageError."""
    inputs, outputs, late = (_whole(directory / name) for name in ("input", "output", "late"))
    return Tables(inputs, {sink: outputs or Batch({}, 0)}, late)


def _whole(directory: Path) -> Batch | None:
    parts = [from_arrow(part) for file in _files(directory) for part in _pieces(file)]
    return concat(parts) if parts else None


def saved_output(directory: Path) -> tuple[Schema | None, Iterator[Batch]]:
    """The output that `Tables.save` wrote: its schema, None if there are no rows, and batches."""
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
