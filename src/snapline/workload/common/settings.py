"""Settings: named parameters that belong to one workload.

A workload declares them with their defaults. A user gives some, as in `--set resources=100 --set
disorder=2s`; the parameters of a run hold those that were given as pairs of name and number, in the order
of the names, so that they can be compared, hashed and written to a file.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from snapline.durations import millis, write_duration
from snapline.errors import UsageError

GivenSettings: TypeAlias = tuple[tuple[str, int], ...]
"""(name, value) of those that were given, sorted."""

_LARGEST = 1 << 40


@dataclass(frozen=True, slots=True)
class Setting:
    """One parameter of a workload: its meaning and its defaults."""

    summary: str  # a few words, for people
    full: int  # its value in the papers' size ...
    small: int  # ... and in the small one
    kind: Literal["number", "permille", "duration"] = "number"  # durations are milliseconds
    least: int = 0
    most: int = _LARGEST

    def read(self, name: str, value: str | int) -> int:
        """The value that a user gave. Raises UsageError."""
        what = f"the setting {name}"
        if self.kind == "duration":
            number = millis(value, what)
        elif isinstance(value, str):
            if not value.isdecimal():
                raise UsageError(f"{what} is a whole {self.kind}, not {value!r}")
            number = int(value)
        else:
            number = value
        if not self.least <= number <= self.most:
            most = f" to {self.write(self.most)}" if self.most < _LARGEST else " on"
            raise UsageError(f"{what} is from {self.write(self.least)}{most}, not {value}")
        return number

    def write(self, value: int) -> str:
        """A value as a user writes it."""
        return write_duration(value) if self.kind == "duration" else str(value)


def split_settings(
    texts: Sequence[str], kind: str = "a setting", example: str = "resources=100"
) -> dict[str, str]:
    """The names and values of `("resources=100", "disorder=2s")`. Raises UsageError.

    `kind` and `example` say what they are, for the message about one that is badly written.
    """
    given: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise UsageError(f"{kind} is written as NAME=VALUE, such as {example}: {text!r}")
        if name in given:
            raise UsageError(f"{kind} can be given once, and {name} is given twice")
        given[name] = value
    return given


def read_settings(
    workload: str, known: Mapping[str, Setting], given: Mapping[str, str | int]
) -> GivenSettings:
    """Read the settings of a workload that a user gave. Raises UsageError."""
    for name in given:
        if name not in known:
            raise UsageError(_unknown(workload, known, name))
    return paired((name, known[name].read(name, value)) for name, value in given.items())


def _unknown(workload: str, known: Mapping[str, Setting], name: str) -> str:
    if not known:
        return f"{workload} has no settings, so none can be called {name!r}"
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"{workload} has no setting {name!r}: {hint}it has {', '.join(known)}"


def paired(settings: Iterable[Sequence[Any]]) -> GivenSettings:
    """Settings as sorted pairs; in a file they are lists."""
    return tuple(sorted((str(name), int(value)) for name, value in settings))


def values_of(known: Mapping[str, Setting], given: GivenSettings, *, full: bool) -> dict[str, int]:
    """The value of every setting: the given one, or the default."""
    usual = {name: setting.full if full else setting.small for name, setting in known.items()}
    return {**usual, **dict(given)}
