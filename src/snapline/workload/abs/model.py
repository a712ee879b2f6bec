"""The input: records with three keys, one for each stage, packed into one number."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from snapline.batch import Column
from snapline.workload.common.base import Params
from snapline.workload.common.generated import Generated, Ints, draw, heated, next_of


@dataclass(frozen=True, slots=True)
class AbsStage:
    """One of the aggregates: the column of its key, and how many keys there are."""

    key: str
    small: int
    full: int

    @property
    def count(self) -> str:
        """The column of its running count."""
        return f"{self.key}_count"

    def keys(self, params: Params) -> int:
        """How many keys a run of this size has."""
        return self.full if params.full else self.small


STAGES: Final = (
    AbsStage("first", 12, 10_000),
    AbsStage("second", 7, 1_000),
    AbsStage("third", 4, 100),
)
"""The stages. Their keys are drawn independently, so every shuffle moves records to any other task."""


def records(params: Params) -> Generated:
    """The records as they come in."""
    return Generated("records", params, _packed, params.records)


def unpacked(params: Params) -> Generated:
    """The same records with a column for each key."""
    return Generated("records", params, _keys, params.records)


def _keys(params: Params, partition: int, offsets: Ints) -> Mapping[str, Ints]:
    """The key of every stage; in each of them `params.hot` percent of the records name the hot key."""
    drawn = {}
    for stage in STAGES:
        field, below = f"records.{stage.key}", stage.keys(params)
        even = draw(params, field, partition, offsets, below)
        hottest = next_of(params, field, below)
        drawn[stage.key] = heated(params, field, partition, offsets, params.records, even, hottest)
    return drawn


def _packed(params: Params, partition: int, offsets: Ints) -> Mapping[str, Column]:
    drawn, packed = _keys(params, partition, offsets), np.zeros(len(offsets), np.int64)
    for stage in STAGES:
        packed = packed * stage.keys(params) + drawn[stage.key]
    return {"packed": packed}
