"""Durations as people write them, everywhere alike: `800ms`, `1.5s`, `2m`, `1h`."""

import re
from typing import Final

from snapline.errors import UsageError
from snapline.ids import Millis

_DURATION: Final = re.compile(r"([0-9]+)(?:\.([0-9]{1,6}))?(ms|s|m|h)")
_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}


def read_duration(text: str) -> Millis:
    """The milliseconds of a text. Raises ValueError."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError("a duration has a number and a unit: ms, s, m or h")
    whole, part, unit = match[1], match[2] or "", _UNITS_MS[match[3]]
    scale = int("1" + "0" * len(part))
    ms, rest = divmod(int(whole + part) * unit, scale)
    if rest:
        raise ValueError("a duration is a whole number of milliseconds")
    return ms


def millis(duration: str | Millis, what: str = "a duration") -> Millis:
    """The milliseconds of what a user gave: a text, or a number of them. Raises UsageError."""
    if isinstance(duration, int):
        return duration
    try:
        return read_duration(duration)
    except ValueError as error:
        raise UsageError(
            f"{what} is written as 500ms, 20s, 2m or 1h, not {duration!r}: {error}"
        ) from error


def write_duration(ms: Millis) -> str:
    """A duration in the largest unit that fits: `1m`, `90s`, `1500ms`."""
    for unit, size in (("m", 60_000), ("s", 1_000)):
        if ms and ms % size == 0:
            return f"{ms // size}{unit}"
    return f"{ms}ms"
