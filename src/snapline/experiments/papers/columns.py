"""Finds the columns of an experiment that a claim names, and which of them belong together.

A column is what varies in it: `{"protocol": "aligned", "hot": 20, "options": {"batch": 1}}`. A word names
it by a value (`aligned`) or by setting and value (`hot=20`, `batch=1`). What is not named varies on both
sides of a comparison alike, and columns that agree in it are compared with each other.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from snapline.errors import UsageError

Varied: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The columns that some words name."""

    columns: tuple[Varied, ...]
    named: frozenset[str]  # the settings that the words have decided


def chosen(columns: Sequence[Varied], words: Sequence[str]) -> Chosen:
    """The columns that have all these values. Raises UsageError if a word is not clear."""
    wanted = dict(_meaning(columns, word) for word in words)
    found = tuple(
        column
        for column in columns
        if all(dict(_settings(column)).get(name) == value for name, value in wanted.items())
    )
    if not found:
        raise UsageError(f"there is no column [{' '.join(words)}]")
    return Chosen(found, frozenset(wanted))


def paired_columns(left: Chosen, right: Chosen) -> list[tuple[Varied, Varied]]:
    """Each column of the left side with that of the right which it is compared with. Raises UsageError."""
    apart = left.named | right.named
    mine, others = _by_rest(left, apart), _by_rest(right, apart)
    if mine.keys() != others.keys():
        raise UsageError("the two sides do not have the same columns: name what varies on one only")
    return [(mine[rest], others[rest]) for rest in mine]


def _by_rest(side: Chosen, apart: frozenset[str]) -> dict[tuple[tuple[str, str], ...], Varied]:
    """The columns of a side by the settings that neither side names."""
    found: dict[tuple[tuple[str, str], ...], Varied] = {}
    for column in side.columns:
        rest = tuple((name, value) for name, value in _settings(column) if name not in apart)
        if rest in found:
            raise UsageError("one side has several columns for one of the other: name what varies")
        found[rest] = column
    return found


def _meaning(columns: Sequence[Varied], word: str) -> tuple[str, str]:
    """The setting and the value that a word stands for."""
    known = dict.fromkeys(setting for column in columns for setting in _settings(column))
    name, equals, value = word.partition("=")
    if equals and (name, value) in known:
        return name, value
    found = [(setting, value) for setting, value in known if value == word]
    if len(found) != 1:
        many = " or ".join(f"{name}={value}" for name, value in found)
        why = f"means several things: {many}" if found else "is no value of what varies"
        raise UsageError(f"{word!r} {why}")
    return found[0]


def _settings(column: Varied) -> Iterator[tuple[str, str]]:
    """What varies in a column, as texts; a table of options counts as its options."""
    for name, value in column.items():
        if isinstance(value, Mapping):
            yield from ((str(inner), str(each)) for inner, each in value.items())
        else:
            yield name, str(value)
