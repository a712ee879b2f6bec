"""Tables of strings, from which the fields are drawn that nobody computes with.

A table has its rows padded to one width, so that a thousand strings are picked by copying whole rows; what
is padding is left out afterwards. Tables are made when they are first used.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from types import MappingProxyType

import numpy as np

from snapline.batch import Array, Varlen
from snapline.workload.common.base import Params
from snapline.workload.common.generated import Ints, draw

ROWS = 1_024
_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)
_DIGITS = np.frombuffer(b"0123456789", np.uint8)


class Texts:
    """Strings to pick from."""

    def __init__(self, rows: Sequence[str]) -> None:
        """A table of these strings."""
        raw = [row.encode() for row in rows]
        self._lengths = np.array([len(row) for row in raw], np.int64)
        width = int(self._lengths.max())
        padded = b"".join(row.ljust(width) for row in raw)
        self._padded = np.frombuffer(padded, np.uint8).reshape(len(raw), width)
        self._kept = np.arange(width) < self._lengths[:, np.newaxis]
        self._even = bool(self._kept.all())

    def __len__(self) -> int:
        return len(self._lengths)

    def take(self, index: Ints) -> Varlen:
        """The strings at these positions."""
        offsets = np.zeros(len(index) + 1, np.int64)
        np.cumsum(self._lengths[index], out=offsets[1:])
        padded = self._padded.take(index, axis=0)
        values = padded.reshape(-1) if self._even else padded[self._kept.take(index, axis=0)]
        return Varlen("str", offsets, values)


def _words(what: str, shortest: int, longest: int, letters: Array = _LETTERS) -> list[str]:
    """As many words as a table has rows; the same ones for the same `what`."""
    dice = Params(seed=0)
    lengths = shortest + draw(dice, f"{what}.length", 0, np.arange(ROWS), longest - shortest + 1)
    places = draw(dice, f"{what}.letter", 0, np.arange(ROWS * longest), len(letters))
    rows = letters[places].reshape(ROWS, longest)
    return [bytes(row[:length]).decode() for row, length in zip(rows, lengths, strict=True)]


def _emails() -> list[str]:
    return [f"{a}@{b}.com" for a, b in zip(_words("e", 7, 7), _words("mail", 5, 5), strict=True)]


def _cards() -> list[str]:
    groups = [_words(f"card {n}", 4, 4, _DIGITS) for n in range(4)]
    return [" ".join(row) for row in zip(*groups, strict=True)]


def _urls() -> list[str]:
    folders = [_words(f"folder {n}", 5, 5) for n in range(3)]
    rows = zip(*folders, strict=True)
    return [f"https://www.nexmark.com/{'/'.join(row)}/item.htm?query=1" for row in rows]


#: by stream and field; the sizes are NexMark's
_TABLES: Mapping[str, Callable[[], Sequence[str]]] = MappingProxyType(
    {
        "persons.email": _emails,
        "persons.credit_card": _cards,
        "persons.extra": partial(_words, "person", 60, 140),
        "auctions.item": partial(_words, "item", 20, 20),
        "auctions.description": partial(_words, "description", 100, 100),
        "auctions.extra": partial(_words, "auction", 200, 400),
        "bids.url": _urls,
        "bids.extra": partial(_words, "bid", 40, 70),
    }
)


@cache
def texts_of(field: str) -> Texts:
    """The table of a field, such as `bids.url`."""
    return Texts(_TABLES[field]())
