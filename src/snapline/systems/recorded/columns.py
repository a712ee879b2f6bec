"""The columns of recorded tables: what each holds, and what it is called in the user's files.

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
    asked: bool = False  # whether it is only read if the user names it (`--column`)


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
"""The columns of each table; an output has `count` and `ids`, or the four columns of two streams."""

SHORT: Final = ("id", "time", "resource")
"""The columns with an option of their own: `--id COL` means `--column id=COL`."""


@dataclass(frozen=True, slots=True)
class Naming:
    """What columns are called in the user's files: by `NAME` in all tables, or by `TABLE.NAME` in one."""

    names: Mapping[str, str] = field(default_factory=dict)

    def given(self, table: str, name: str) -> str | None:
        """The name that the user gave for a column, or None."""
        return self.names.get(f"{table}.{name}", self.names.get(name))

    def of(self, table: str, name: str) -> str:
        """The name of a column in the files: the user's, or else our own."""
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
    """The columns to read of a file, with their names there. Raises UsageError if one is missing."""
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
    """Raise UsageError if the type of a column is not of this kind."""
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
    """Whether a type holds whole numbers."""
    return bool(pa.types.is_integer(type)) and type != pa.uint64()


def is_string(type: pa.DataType) -> bool:
    """Whether a type holds strings."""
    if pa.types.is_dictionary(type):
        type = type.value_type
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type))


def is_list(type: pa.DataType) -> bool:
    """Whether a type holds lists."""
    return bool(pa.types.is_list(type) or pa.types.is_large_list(type))


def is_text(type: pa.DataType) -> bool:
    """Whether a type holds strings, or lists of strings."""
    return is_string(type.value_type) if is_list(type) else is_string(type)
