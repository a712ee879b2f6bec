"""Durations as people write them, everywhere alike: `800ms`, `1.5s`, `2m`, `1h`."""

import operator
import re
import reprlib
from typing import Any, Final

from snapline.errors import UsageError
from snapline.ids import Millis

_DURATION: Final = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,6}))?(ms|s|m|h)", re.ASCII)
_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}

LONGEST_MS: Final[Millis] = 365 * 24 * 3_600_000
"""The longest duration that is taken: a year, which no clock of ours overflows."""


def read_duration(text: str) -> Millis:
    """Read a duration such as `1.5s`, in milliseconds. Raises ValueError."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError("a duration has a number and a unit: ms, s, m or h")
    whole, part, unit = match[1], match[2] or "", _UNITS_MS[match[3]]
    scale = int("1" + "0" * len(part))
    ms, rest = divmod(int(whole + part) * unit, scale)
    if rest:
        raise ValueError("a duration is a whole number of milliseconds")
    return ms


def millis(
    duration: Any, what: str = "a duration", *, least_ms: Millis = 0, most_ms: Millis = LONGEST_MS
) -> Millis:
    """Read a duration that a user gave as a text or as a number of milliseconds. Raises UsageError."""
    if isinstance(duration, str):
        try:
            ms = read_duration(duration)
        except ValueError as error:
            raise UsageError(
                f"{what} is written as 500ms, 20s, 2m or 1h, not {reprlib.repr(duration)}: {error}"
            ) from error
    else:
        ms = _number(duration, what)
    if not least_ms <= ms <= most_ms:
        given = duration if isinstance(duration, str) else f"{ms}ms"
        least, most = write_duration(least_ms), write_duration(most_ms)
        raise UsageError(f"{what} is from {least} to {most}, not {given}")
    return ms


def _number(duration: Any, what: str) -> Millis:
    try:
        if isinstance(duration, bool):
            raise TypeError
        return operator.index(duration)
    except TypeError:
        raise UsageError(
            f"{what} is written as '500ms', '20s', '2m' or '1h', or is a whole number of "
            f"milliseconds, not {reprlib.repr(duration)}"
        ) from None


def write_duration(ms: Millis) -> str:
    """A duration in the largest unit that fits: `1h`, `1m`, `90s`, `1500ms`."""
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1_000)):
        if ms and ms % size == 0:
            return f"{ms // size}{unit}"
    return f"{ms}ms"
