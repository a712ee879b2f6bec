"""Finds the Parquet files of recorded inputs and outputs, and checks their columns.

A table is a file, or a directory with files that end in `.parquet`, at any depth, in the order of their
paths; what begins with a dot or an underscore is not read. Where Structured Streaming keeps its log of
files (`_spark_metadata`) only those that count are read. `recorded_columns` has their columns; others are
not read. Times may be numbers (ms) or timestamps; ids and resources strings, too.

Schemas and sizes are read from the footers of the files, so bad input is reported, with file and column,
before anything is judged or started.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from snapline.errors import SnaplineError, UsageError
from snapline.systems.recorded.columns import (
    COLUMNS,
    IDS,
    Naming,
    check_type,
    is_list,
    is_text,
    wanted,
)
from snapline.systems.structured_streaming.files import LOG, logged_files


@dataclass(frozen=True, slots=True)
class RecordedTable:
    """One table: its files in order, and the Arrow types of the columns that are read."""

    name: str  # input, output or late
    files: tuple[Path, ...]
    rows: tuple[int, ...]  # of each file
    types: Mapping[str, pa.DataType]
    called: Mapping[str, str]  # what these columns are called in the files
    values: int  # rows, or ids in its lists if there are more

    @property
    def option(self) -> str:
        """The option that names the table on the command line."""
        return f"--{self.name}"


@dataclass(frozen=True, slots=True)
class RecordedTables:
    """The three recorded tables."""

    inputs: RecordedTable
    outputs: RecordedTable
    late: RecordedTable | None

    @property
    def values(self) -> int:
        """How many events and claims there are together: they decide how much memory a judge needs."""
        return self.inputs.values + self.outputs.values + (self.late.values if self.late else 0)


def open_recorded(
    inputs: Path, outputs: Path, late: Path | None, naming: Naming | None = None
) -> RecordedTables:
    """Find the files and check their columns. Raises UsageError that names the file and the column."""
    naming = naming or Naming()
    found = RecordedTables(
        _open("input", inputs, naming),
        _open("output", outputs, naming),
        _open("late", late, naming) if late is not None else None,
    )
    if not sum(found.inputs.rows):
        raise UsageError(f"--input {inputs} has no events: there is nothing to judge by")
    _check_alike(found.inputs, "resource", found.outputs, "resource")
    for name in (name for name in found.outputs.types if COLUMNS["output"][name].kind == IDS):
        _check_alike(found.inputs, "id", found.outputs, name)
    if found.late is not None:
        _check_alike(found.inputs, "id", found.late, "id")
    return found


def _check_alike(one: RecordedTable, column: str, other: RecordedTable, beside: str) -> None:
    """Raise UsageError unless both columns hold strings, or both hold numbers: they are compared."""
    first, second = one.types[column], other.types[beside]
    if is_text(first) != is_text(second):
        raise UsageError(
            f"column '{one.called[column]}' is {first} in {one.option}, but '{other.called[beside]}' is "
            f"{second} in {other.option}: cast one of them"
        )


def _open(name: str, path: Path, naming: Naming) -> RecordedTable:
    files = _files(name, path)
    types: dict[str, pa.DataType] = {}
    called: dict[str, str] = {}
    rows, values = [], 0
    for file in files:
        schema, counted, listed = _footer(file)
        called = wanted(name, file, schema.names, naming)
        for theirs in called.values():
            if schema.names.count(theirs) > 1:
                raise UsageError(f"{file} has {schema.names.count(theirs)} columns {theirs!r}")
        own = {column: schema.field(theirs).type for column, theirs in called.items()}
        for column, type in own.items():
            check_type(file, called[column], type, COLUMNS[name][column].kind)
        types = types or own
        if own != types:
            column = next(c for c in {**own, **types} if own.get(c) != types.get(c))
            raise UsageError(
                f"column '{naming.of(name, column)}' is not alike in {files[0]} "
                f"({types.get(column, 'it has none')}) and {file} ({own.get(column, 'it has none')}): "
                f"write all files of --{name} alike"
            )
        rows.append(counted)
        lists = tuple(f"{theirs}." for column, theirs in called.items() if is_list(own[column]))
        values += max(counted, sum(count for path, count in listed if path.startswith(lists)))
    return RecordedTable(name, files, tuple(rows), types, called, values)


def _files(name: str, path: Path) -> tuple[Path, ...]:
    option = f"--{name} {path}"
    if path.is_file():
        return (path,)
    if not path.is_dir():
        raise UsageError(f"{option}: there is no such file or directory")
    if (path / LOG).is_dir():
        try:
            files = logged_files(path)
        except (SnaplineError, OSError, ValueError, KeyError) as error:
            raise UsageError(f"the log {path / LOG} cannot be read: {error}") from error
    else:
        below = (file.relative_to(path) for file in path.rglob("*.parquet") if not file.is_dir())
        files = [path / file for file in sorted(below) if not _hidden(file)]
    if not files:
        raise UsageError(f"{option} has no files that end in .parquet: name where they are")
    return tuple(file.resolve() for file in files)


def _hidden(file: Path) -> bool:
    return any(part.startswith((".", "_")) for part in file.parts)


def _footer(file: Path) -> tuple[pa.Schema, int, list[tuple[str, int]]]:
    """The schema of a file, its rows, and the paths of its columns with how many values they have."""
    try:
        with parquet.ParquetFile(file) as opened:
            meta, schema = opened.metadata, opened.schema_arrow
            groups = [meta.row_group(n) for n in range(meta.num_row_groups)]
            chunks = [group.column(n) for group in groups for n in range(group.num_columns)]
            return schema, meta.num_rows, [(c.path_in_schema, c.num_values) for c in chunks]
    except (pa.ArrowException, OSError) as error:
        raise UsageError(unreadable(file, error)) from error


def unreadable(file: Path, error: Exception) -> str:
    """What to say of a file that cannot be read."""
    first = str(error).splitlines()[0] if str(error) else type(error).__name__
    return f"{file} is not Parquet, or it is damaged or cut short ({first}): write it again"
