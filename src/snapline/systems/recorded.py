"""Inputs and outputs that somebody recorded as Parquet, of a system that Snapline did not run.

A table is a file, or a directory with files that end in `.parquet`, at any depth, in the order of their
paths; what begins with a dot or an underscore is not read. Where Structured Streaming keeps its log of
files (`_spark_metadata`) only those that count are read. Columns are named as `snapline.validate` names
them (`COLUMNS`), others are not read. Times may be numbers (ms) or timestamps, resources strings, too.

Schemas and sizes come from the ends of the files, so bad input is told, with file and column, before
anything is judged or started.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from snapline.batch import Batch, concat
from snapline.errors import SnaplineError, UsageError
from snapline.runtime.arrow import from_arrow
from snapline.systems.streaming_files import LOG, logged_files


class Column(NamedTuple):
    """What a column holds."""

    kind: str  # one of `KINDS`
    optional: bool = False


WHOLE, TIME, NAME, FLAG, IDS = KINDS = (
    "a whole number (int64)",
    "a time: a timestamp, or milliseconds as int64",
    "a string or a whole number",
    "true or false",
    "a list of whole numbers (int64)",
)
_ONE: Final = {"count": Column(WHOLE), "ids": Column(IDS)}
_TWO: Final = {
    "gets": Column(WHOLE),
    "get_ids": Column(IDS),
    "posts": Column(WHOLE),
    "post_ids": Column(IDS),
}
COLUMNS: Final[Mapping[str, Mapping[str, Column]]] = {
    "input": {
        "id": Column(WHOLE),
        "time": Column(TIME),
        "resource": Column(NAME),
        "post": Column(FLAG, optional=True),
        "partition": Column(WHOLE, optional=True),
        "offset": Column(WHOLE, optional=True),
    },
    "output": {
        "resource": Column(NAME),
        "window": Column(TIME),
        **_ONE,
        **_TWO,
        "position": Column(WHOLE, optional=True),
    },
    "late": {"id": Column(WHOLE), "position": Column(WHOLE, optional=True)},
}
"""What each table has; an output has `count` and `ids`, or the four of two streams instead."""


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its files in order, and the Arrow types of the columns that are read."""

    name: str  # input, output or late
    files: tuple[Path, ...]
    rows: tuple[int, ...]  # of each file
    types: Mapping[str, pa.DataType]
    values: int  # rows, or ids in its lists if there are more

    @property
    def option(self) -> str:
        """What names it on the command line."""
        return f"--{self.name}"


@dataclass(frozen=True, slots=True)
class Recorded:
    """All that is to be judged."""

    inputs: Table
    outputs: Table
    late: Table | None

    @property
    def values(self) -> int:
        """Events and claims together: what a judge has to hold, or to shuffle."""
        return self.inputs.values + self.outputs.values + (self.late.values if self.late else 0)


def open_recorded(inputs: Path, outputs: Path, late: Path | None) -> Recorded:
    """Look at what was recorded. Raises UsageError, with file and column."""
    found = Recorded(
        _open("input", inputs),
        _open("output", outputs),
        _open("late", late) if late is not None else None,
    )
    if not sum(found.inputs.rows):
        raise UsageError(f"--input {inputs} has no events: there is nothing to judge by")
    names = [
        pa.types.is_integer(table.types["resource"]) for table in (found.inputs, found.outputs)
    ]
    if names[0] != names[1]:
        raise UsageError(
            f"column 'resource' is {found.inputs.types['resource']} in --input {inputs}, but "
            f"{found.outputs.types['resource']} in --output {outputs}: cast one of them"
        )
    return found


def _open(name: str, path: Path) -> Table:
    files = _files(name, path)
    types: dict[str, pa.DataType] = {}
    rows, values = [], 0
    for file in files:
        schema, counted, listed = _footer(file)
        own = {column: schema.field(column).type for column in _wanted(name, file, schema.names)}
        for column, type in own.items():
            _check_type(file, column, type, COLUMNS[name][column].kind)
        types = types or own
        if own != types:
            column = next(c for c in {**own, **types} if own.get(c) != types.get(c))
            raise UsageError(
                f"column '{column}' is not alike in {files[0]} ({types.get(column, 'it has none')}) and "
                f"{file} ({own.get(column, 'it has none')}): write all files of --{name} alike"
            )
        rows.append(counted)
        values += max(counted, listed)
    return Table(name, files, tuple(rows), types, values)


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
        below = (file.relative_to(path) for file in path.rglob("*.parquet") if file.is_file())
        files = [path / file for file in sorted(below) if not _hidden(file)]
    if not files:
        raise UsageError(f"{option} has no files that end in .parquet: name where they are")
    return tuple(file.resolve() for file in files)


def _hidden(file: Path) -> bool:
    return any(part.startswith((".", "_")) for part in file.parts)


def _footer(file: Path) -> tuple[pa.Schema, int, int]:
    """The schema of a file, its rows, and the ids in its lists."""
    try:
        with parquet.ParquetFile(file) as opened:
            meta, schema = opened.metadata, opened.schema_arrow
            groups = [meta.row_group(n) for n in range(meta.num_row_groups)]
            chunks = [group.column(n) for group in groups for n in range(group.num_columns)]
            lists = ("ids.", "get_ids.", "post_ids.")
            listed = sum(c.num_values for c in chunks if c.path_in_schema.startswith(lists))
            return schema, meta.num_rows, listed
    except (pa.ArrowException, OSError) as error:
        raise UsageError(_unreadable(file, error)) from error


def _unreadable(file: Path, error: Exception) -> str:
    first = str(error).splitlines()[0] if str(error) else type(error).__name__
    return f"{file} is not Parquet, or it is damaged or cut short ({first}): write it again"


def _wanted(name: str, file: Path, there: Sequence[str]) -> list[str]:
    """The columns to read of a file; UsageError if one lacks."""
    columns = dict(COLUMNS[name])
    if name == "output":
        absent = _TWO if _ONE.keys() & {*there} or not _TWO.keys() & {*there} else _ONE
        columns = {n: column for n, column in columns.items() if n not in absent}
    for column, (kind, optional) in columns.items():
        if column not in there and not optional:
            raise UsageError(
                f"{file} (--{name}) has no column '{column}' ({kind}): it has "
                f"{', '.join(there) or 'no columns'}; rename yours, or see docs/validate.md"
            )
    return [column for column in columns if column in there]


def _check_type(file: Path, column: str, type: pa.DataType, kind: str) -> None:
    fits = {
        WHOLE: _is_whole(type),
        TIME: _is_whole(type) or pa.types.is_timestamp(type),
        NAME: _is_whole(type) or _is_string(type),
        FLAG: pa.types.is_boolean(type),
        IDS: (pa.types.is_list(type) or pa.types.is_large_list(type))
        and _is_whole(type.value_type),
    }
    if not fits[kind]:
        raise UsageError(f"{file}: column '{column}' is {type}, but must be {kind}: cast it")


def _is_whole(type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type)) and type != pa.uint64()


def _is_string(type: pa.DataType) -> bool:
    if pa.types.is_dictionary(type):
        type = type.value_type
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type))


# In process.


def batch_of(table: Table) -> Batch:
    """A whole table in memory. Raises UsageError for what cannot be read, with the file."""
    parts = [part for file in table.files for part in _batches(table, file)]
    if parts:
        return concat(parts)
    empty = pa.schema([(name, _plain(type)) for name, type in table.types.items()])
    return from_arrow(empty.empty_table())


def _batches(table: Table, file: Path) -> Iterator[Batch]:
    try:
        with parquet.ParquetFile(file) as opened:
            read = opened.read([*table.types])
    except (pa.ArrowException, OSError) as error:
        raise UsageError(_unreadable(file, error)) from error
    columns = {}
    for name, type in table.types.items():
        column = read.column(name)
        if pa.types.is_timestamp(type):
            column = pc.floor_temporal(column, unit="millisecond").cast(pa.timestamp("ms"))
        columns[name] = column.cast(_plain(type))
    try:
        batch = from_arrow(pa.table(columns).combine_chunks())
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from error
    if len(batch):
        yield batch


def _plain(type: pa.DataType) -> pa.DataType:
    """The type that a judge knows."""
    if pa.types.is_integer(type) or pa.types.is_timestamp(type):
        return pa.int64()
    if _is_string(type):
        return pa.large_string()
    is_list = pa.types.is_list(type) or pa.types.is_large_list(type)
    return pa.large_list(pa.int64()) if is_list else type
