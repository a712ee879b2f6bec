"""What a builder of dataflows is given, checked: what cannot be used is refused in the line that says it.

Otherwise a wrong type would fail somewhere inside, or not before slots run, and a name of which no file can
be made would let a run try to store its snapshots for ever.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol, runtime_checkable
from urllib.parse import quote

from snapline.arguments import shown
from snapline.batch import Schema
from snapline.errors import GraphError

_RESERVED: Final = "/>#~"
_ENDING: Final = ".obj"  # that of stored objects, which the store itself adds
_OF_A_COLUMN: Final = ("sum", "mean", "min", "max", "first", "last", "collect")
_CHARS_MAX: Final = (
    120  # files are named after operators, and other things are added to their names
)


def check_name(name: Any) -> None:
    """Raise GraphError unless an operator, a source or a sink can have this name."""
    if not isinstance(name, str):
        raise GraphError(f"a name is a text, not {shown(name)}")
    if not name or any(sign in name for sign in _RESERVED):
        raise GraphError(f"'{name}' is no name: it is empty or has one of {_RESERVED}")
    if not name.isprintable():
        raise GraphError(f"{shown(name)} is no name: it has characters that cannot be printed")
    if name.startswith(".") or name.endswith(_ENDING):
        raise GraphError(f"'{name}' is no name: it begins with a dot, or ends in {_ENDING}")
    if len(quote(name, safe="")) > _CHARS_MAX:
        raise GraphError(
            f"{shown(name)} is too long for a name: it may have {_CHARS_MAX} characters, or a third of "
            "that where they are not plain letters and digits"
        )


def check_callable(step: str, what: str, value: Any) -> None:
    """Raise GraphError unless a step was given something that can be called."""
    if not callable(value):
        raise GraphError(f"{step} takes {what}, not {shown(value)}")


def check_columns(columns: tuple[Any, ...]) -> None:
    """Raise GraphError unless these are names of columns, of which there is at least one."""
    if not columns:
        raise GraphError("key_by needs at least one column")
    for column in columns:
        if not isinstance(column, str):
            raise GraphError(
                f"key_by takes names of columns, as in key_by('bidder', 'auction'), not {shown(column)}"
            )


def check_kind(step: str, kind: type | tuple[type, ...], what: str, value: Any) -> None:
    """Raise GraphError unless a step was given a value of this kind."""
    if not isinstance(value, kind):
        raise GraphError(f"{step} takes {what}, not {shown(value)}")


def check_aggregates(schema: Schema | None, aggregates: Mapping[str, Any]) -> None:
    """Raise GraphError unless each aggregate has its form, and a column that may be there."""
    for name, aggregate in aggregates.items():
        if isinstance(aggregate, str) and aggregate not in _OF_A_COLUMN:
            continue  # a count, or no aggregate at all: who makes the plan knows all of them
        pair = isinstance(aggregate, tuple | list) and len(aggregate) == 2
        if not (pair and all(isinstance(part, str) for part in aggregate)):
            raise GraphError(
                f"the aggregate '{name}' is 'count', or a pair as ('max', 'price'), not {shown(aggregate)}"
            )
        if aggregate[0] in _OF_A_COLUMN and schema is not None and aggregate[1] not in schema:
            raise GraphError(
                f"there is no column '{aggregate[1]}' for the aggregate '{name}': {', '.join(schema)}"
            )


@runtime_checkable
class PathLike(Protocol):
    """A path that is no text, such as a `pathlib.Path`."""

    def __fspath__(self) -> str:
        """The path as a text."""
        ...


def given_folder(sink: str, to: str | PathLike | None, format: str | None) -> str | None:
    """The directory into which a sink is to write files; None: into none. Raises GraphError."""
    if format not in (None, "parquet"):
        raise GraphError(f"the sink '{sink}' can write the format parquet, and not {shown(format)}")
    if to is None:
        if format is not None:
            raise GraphError(f"the sink '{sink}' has a format, but no directory: say to=, too")
        return None
    path = to.__fspath__() if isinstance(to, PathLike) else to
    if not isinstance(path, str) or not path.strip() or "\0" in path:
        raise GraphError(f"the sink '{sink}' needs the name of a directory, not {shown(to)}")
    return path
