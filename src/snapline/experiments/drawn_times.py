"""Times of faults that are drawn anew for every turn of a sweep: `kill slot=1 at=18s..23s for=2s..5s`.

How much a failure costs depends on when it strikes between two checkpoints. A sweep whose kills all come at
one time measures that one distance, and a protocol whose checkpoints happen to lie well looks better than
it is. So a time may be a range, of which each turn draws one moment; `at=18s..+interval` is the range of
one checkpoint interval from 18 s on. How long a fault lasts may be a range as well. The same share of its
range is drawn for all columns of a turn: runs that are pairs are struck at the same time.
"""

import random
import re
from collections.abc import Callable

from snapline.durations import read_duration, write_duration
from snapline.errors import UsageError
from snapline.ids import Millis

_RANGE = re.compile(r"\b(at|for)=([^\s;]*?)\.\.([^\s;]*)")
_INTERVAL = "+interval"


def has_ranges(faults: str) -> bool:
    """Whether any time in these statements is a range."""
    return _RANGE.search(faults) is not None


def at_last(faults: str, interval_ms: Millis) -> str:
    """The statements with the end of each range as its time. Raises UsageError if a range is wrong."""
    return _replaced(faults, interval_ms, lambda: 1.0)


def drawn(faults: str, interval_ms: Millis, seed: int, turn: int) -> str:
    """The statements with the times that a turn draws, from the seed of the sweep."""
    return _replaced(faults, interval_ms, random.Random(f"{seed}/{turn}/faults").random)


def _replaced(faults: str, interval_ms: Millis, share: Callable[[], float]) -> str:
    def time_of(found: re.Match[str]) -> str:
        first, last = _range(found, interval_ms)
        return f"{found[1]}={write_duration(first + round(share() * (last - first)))}"

    return _RANGE.sub(time_of, faults)


def _range(found: re.Match[str], interval_ms: Millis) -> tuple[Millis, Millis]:
    try:
        first = read_duration(found[2])
        last = first + interval_ms if found[3] == _INTERVAL else read_duration(found[3])
    except ValueError as error:
        raise UsageError(
            f"{found[0]}: a range is written as at=18s..23s, or at=18s..{_INTERVAL}: {error}"
        ) from error
    if last <= first:
        raise UsageError(f"{found[0]}: a range ends after it begins")
    return first, last
