"""The columns of recorded tables: what each holds, and what it is called in somebody's files.

Columns have the names of `COLUMNS`, unless a `Naming` says what they are called. A name may be given for
one table (`output.window=start`) or for every table that has such a column (`resource=page`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa

from snapline.errors import UsageError


class Column(NamedTuple):
    """What a column holds."""

    kind: str  # one of `KINDS`
    optional: bool = False
    asked: bool = False  # it is only read if the user names it (`--column`)


WHOLE, TIME, NAME, FLAG, IDS = KINDS = (
    "a whole number (int64)",
    "a time: a timestamp, or milliseconds as int64",
    "a string or a whole number",
    "true or false",
    "a list of strings or whole numbers",
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
        "id": Column(NAME),
        "time": Column(TIME),
        "resource": Column(NAME),
        "post": Column(FLAG, optional=True),
        "partition": Column(WHOLE, optional=True),
        "offset": Column(WHOLE, optional=True),
        "watermark": Column(TIME, optional=True, asked=True),
    },
    "output": {
        "resource": Column(NAME),
        "window": Column(TIME),
        **_ONE,
        **_TWO,
        "position": Column(WHOLE, optional=True),
    },
    "late": {"id": Column(NAME), "position": Column(WHOLE, optional=True)},
}
"""What each table has; an output has `count` and `ids`, or the four of two streams instead."""

SHORT: Final = ("id", "time", "resource")
"""What has an option of its own: `--id COL` means `--column id=COL`."""


@dataclass(frozen=True, slots=True)
class Naming:
    """What columns are called in somebody's files: by `NAME`, or by `TABLE.NAME`."""

    names: Mapping[str, str] = field(default_factory=dict)

    def given(self, table: str, name: str) -> str | None:
        """What the user calls a column, if it was said."""
        return self.names.get(f"{table}.{name}", self.names.get(name))

    def of(self, table: str, name: str) -> str:
        """What a column is called."""
        return self.given(table, name) or name


def naming(given: Sequence[str], short: Mapping[str, str | None]) -> Naming:
    """The names of `--column NAME=COL` and of the options for `SHORT`. Raises UsageError."""
    names = {name: column for name, column in short.items() if column is not None}
    for text in given:
        target, equals, column = text.partition("=")
        if not (target and equals and column):
            raise UsageError(
                "--column is written as NAME=COL, or as TABLE.NAME=COL for one table only, as in "
                f"output.window=start, not {text!r}"
            )
        if target not in _targets():
            tables = "; ".join(f"{table}: {', '.join(known)}" for table, known in COLUMNS.items())
            raise UsageError(f"--column {text}: there is no {target!r} to be named ({tables})")
        if target in names:
            raise UsageError(f"{target} is named twice: {names[target]!r} and {column!r}")
        names[target] = column
    return Naming(names)


def _targets() -> set[str]:
    both = [(table, name) for table, known in COLUMNS.items() for name in known]
    return {name for _, name in both} | {f"{table}.{name}" for table, name in both}


def wanted(table: str, file: Path, there: Sequence[str], naming: Naming) -> dict[str, str]:
    """The columns to read of a file, and what they are called there; raises UsageError if one is gone."""
    columns = dict(COLUMNS[table])
    called = {name: naming.of(table, name) for name in columns}
    if table == "output":
        one, two = ({called[name] for name in group} & {*there} for group in (_ONE, _TWO))
        absent = _TWO if one or not two else _ONE
        columns = {name: column for name, column in columns.items() if name not in absent}
    for name, (kind, optional, _) in columns.items():
        given = naming.given(table, name)
        if called[name] not in there and (given or not optional):
            option = f"--{name} COL" if name in SHORT else f"--column {table}.{name}=COL"
            raise UsageError(
                f"{file} (--{table}) has no column '{called[name]}' ({kind}): it has "
                f"{', '.join(there) or 'no columns'}; {option} says which of them it is"
                f"{', or --column ' + table + '.' + name + '=COL here only' if given else ''}"
            )
    return {
        name: called[name]
        for name, column in columns.items()
        if called[name] in there and (naming.given(table, name) or not column.asked)
    }


def check_type(file: Path, called: str, type: pa.DataType, kind: str) -> None:
    """Whether a column has a type of this kind. Raises UsageError."""
    fits = {
        WHOLE: is_whole(type),
        TIME: is_whole(type) or pa.types.is_timestamp(type),
        NAME: is_whole(type) or is_string(type),
        FLAG: pa.types.is_boolean(type),
        IDS: is_list(type) and (is_whole(type.value_type) or is_string(type.value_type)),
    }
    if not fits[kind]:
        raise UsageError(f"{file}: column '{called}' is {type}, but must be {kind}: cast it")


def is_whole(type: pa.DataType) -> bool:
    """Whether it holds whole numbers."""
    return bool(pa.types.is_integer(type)) and type != pa.uint64()


def is_string(type: pa.DataType) -> bool:
    """Whether it holds strings."""
    if pa.types.is_dictionary(type):
        type = type.value_type
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type))


def is_list(type: pa.DataType) -> bool:
    """Whether it holds lists."""
    return bool(pa.types.is_list(type) or pa.types.is_large_list(type))


def is_text(type: pa.DataType) -> bool:
    """Whether it holds strings, or lists of them."""
    return is_string(type.value_type) if is_list(type) else is_string(type)
