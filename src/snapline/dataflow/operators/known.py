"""What is known of the columns of a stream, and what becomes of it behind an operator.

A source knows which columns its records have, and what their numbers mean where they stand for dates,
timestamps or decimals (`storage/column_types.py`). An operator that passes a column on passes its meaning
on, too; a function may do anything, so behind one nothing is known. What is known at a sink comes back with
the type that it had.
"""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from snapline.errors import GraphError
from snapline.storage.column_types import TIMESTAMP_MS, Meaning

Known: TypeAlias = Mapping[str, Meaning | None] | None
"""The columns of a stream, each with its meaning (None: the numbers mean themselves); None: unknown."""

_TIME: Final = "time"
_WINDOW: Final = "window"


def running(given: Known, keys: Sequence[str], results: Sequence[str]) -> Known:
    """What is known of results per record: its key and time, and values that mean themselves."""
    if given is None:
        return None
    kept = keys if _TIME in keys or _TIME not in given else (*keys, _TIME)
    return {**{name: given.get(name) for name in kept}, **dict.fromkeys(results)}


def windowed(
    given: Known, keys: Sequence[str], time: str, results: Mapping[str, Meaning | None]
) -> Known:
    """What is known of results per window. Raises GraphError if `time` is in no milliseconds."""
    if given is None:
        return None
    meaning = given.get(time)
    if meaning not in (None, TIMESTAMP_MS):
        raise GraphError(
            f"windows are in milliseconds, and '{time}' is a {meaning}: name it where the stream begins, "
            f"flow.source(df, time='{time}'), and leave time= out of the window"
        )
    stamps = {_WINDOW: meaning, _TIME: meaning}
    return {**{name: given.get(name) for name in keys}, **results, **stamps}


def paired(left: Known, right: Known, keys: Sequence[tuple[str, str]]) -> Known:
    """What is known of pairs: the columns of both sides, as a join names them."""
    check_keys(left, right, keys)
    if left is None or right is None:
        return None
    shared = {name for name, other in keys if name == other}
    columns = dict(left)
    for name, meaning in right.items():
        if name not in shared:
            columns[free_name(name, columns)] = meaning
    return columns


def check_keys(left: Known, right: Known, keys: Sequence[tuple[str, str]]) -> None:
    """Raise GraphError if two keys are compared whose numbers mean different things."""
    if left is None or right is None:
        return
    for name, other in keys:
        mine, theirs = left.get(name), right.get(other)
        if mine != theirs:
            raise GraphError(
                f"'{name}' is a {mine or 'plain value'} and '{other}' a {theirs or 'plain value'}: to be "
                "joined they have to be of one type, so cast one of them in its DataFrame"
            )


def merged(streams: Sequence[Known]) -> Known:
    """What is known of several streams as one. Raises GraphError if a column means different things."""
    first, *others = streams
    for other in others:
        if first is None or other is None:
            return None
        for name in first.keys() & other.keys():
            if first[name] != other[name]:
                raise GraphError(
                    f"'{name}' is a {first[name] or 'plain value'} in one stream and a "
                    f"{other[name] or 'plain value'} in another: cast one of them in its DataFrame"
                )
        first = first if first.keys() == other.keys() else None
    return first


def free_name(name: str, taken: Mapping[str, object]) -> str:
    """The name of a column of the right side: where it is taken, it ends in `_right`."""
    while name in taken:
        name += "_right"
    return name
