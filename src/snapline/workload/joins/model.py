"""The input: stream 1, whose rows are in windows, and stream 2, whose records only ask for them.

Rows of stream 1 have two numbers and a text of 70 bytes, those of stream 2 a number and a text of 10.
Stream 1 comes from one partition, as SPADE's came from one source, so the order of its rows is known;
stream 2 comes from all of them. Keys are drawn evenly or, with `zipf`, so that the n-th key comes as often
as 1 / n to the power of `zipf` / 1000 says.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from snapline.batch import Column, Varlen
from snapline.ids import Millis
from snapline.workload.common.base import Params
from snapline.workload.common.generated import Generated, Ints, draw, draw_bits, heated, next_of
from snapline.workload.common.settings import Setting, values_of

STORED, ASKING = "stream1", "stream2"
TEXT_BYTES: Final[Mapping[str, int]] = MappingProxyType({STORED: 70, ASKING: 10})
TICKS_PER_RUN: Final = 48  # of the small size
TICK_FULL_MS: Final[Millis] = 10

_SCALE: Final = 1 << 53


def _settings(window: tuple[int, int], keys: tuple[int, int], asked: tuple[int, int]) -> Any:
    return MappingProxyType(
        {
            "window": Setting("rows of a window of stream 1", *window, least=1),
            "keys": Setting("how many keys stream 1 has", *keys, least=1),
            "asked": Setting("how many keys stream 2 has", *asked, least=1),
            "zipf": Setting(
                "how uneven the keys of stream 1 are; 0: even", 0, 0, "permille", most=4_000
            ),
            "ordered": Setting(
                "1: rows meet in the order of their times, 0: as they come", 0, 1, most=1
            ),
        }
    )


SJOIN_SETTINGS: Final[Mapping[str, Setting]] = _settings((8_192, 20), (1_500, 16), (1_500, 16))
GJOIN_SETTINGS: Final[Mapping[str, Setting]] = _settings((1_024, 4), (50, 4), (600, 14))


@dataclass(frozen=True, slots=True)
class JoinShape:
    """The values of all settings of a run."""

    window: int
    keys: int
    asked: int
    zipf: int
    ordered: bool
    by_key: bool  # there is a window for each key
    tick_ms: (
        Millis  # rows of so long are one step: first those that are stored, then those that ask
    )


@lru_cache(maxsize=64)
def shape_of(params: Params, *, by_key: bool) -> JoinShape:
    """The settings of a run: as given, or as its size says."""
    settings = GJOIN_SETTINGS if by_key else SJOIN_SETTINGS
    values = values_of(settings, params.settings, full=params.full)
    tick = TICK_FULL_MS if params.full else max(params.duration_ms // TICKS_PER_RUN, 1)
    window, keys, asked, zipf = (values[name] for name in ("window", "keys", "asked", "zipf"))
    return JoinShape(window, keys, asked, zipf, bool(values["ordered"]), by_key, tick)


def stored(params: Params, shape: JoinShape) -> Generated:
    """Stream 1: all of it in one partition."""
    whole = replace(params, partitions=1, records=params.records * params.partitions, cut=())
    return Generated(STORED, whole, _Fields(STORED, shape), whole.records)


def asking(params: Params, shape: JoinShape) -> Generated:
    """Stream 2."""
    return Generated(ASKING, params, _Fields(ASKING, shape), params.records)


@dataclass(frozen=True, slots=True)
class _Fields:
    """The columns of a stream."""

    stream: str
    shape: JoinShape

    def __call__(self, params: Params, partition: int, offsets: Ints) -> Mapping[str, Column]:
        is_stored, field = self.stream == STORED, f"{self.stream}.key"
        below = self.shape.keys if is_stored else self.shape.asked
        even = draw(params, field, partition, offsets, _SCALE if is_stored else below)
        keys = (
            np.searchsorted(_shares(below, self.shape.zipf), even, "right") if is_stored else even
        )
        hottest = next_of(params, "key", min(self.shape.keys, self.shape.asked))
        columns: dict[str, Column] = {
            "key": heated(params, field, partition, offsets, params.records, keys, hottest),
            "whole": np.zeros(len(offsets), np.int64),
            "text": _texts(params, self.stream, partition, offsets),
        }
        if is_stored:
            columns["number"] = draw(params, f"{self.stream}.number", partition, offsets, 1 << 31)
        return columns


@lru_cache(maxsize=16)
def _shares(keys: int, zipf: int) -> Ints:
    """Where the numbers below `_SCALE` end that are drawn for each key but the last."""
    weights = np.arange(1, keys + 1, dtype=np.float64) ** -(zipf / 1_000)
    shares: Ints = (np.cumsum(weights)[:-1] / weights.sum() * _SCALE).astype(np.int64)
    return shares


def _texts(params: Params, stream: str, partition: int, offsets: Ints) -> Varlen:
    """Texts of small letters, all of one length."""
    length = TEXT_BYTES[stream]
    words = [
        draw_bits(params, f"{stream}.text.{n}", partition, offsets) for n in range(-(-length // 8))
    ]
    letters = np.column_stack(words).view(np.uint8)[:, :length] % 26 + ord("a")
    ends = np.arange(len(offsets) + 1, dtype=np.int64) * length
    return Varlen("str", ends, np.ascontiguousarray(letters, np.uint8).reshape(-1))
