"""The input: readings of the sensors of two steps, and for each wafer what its test says.

A wafer has a number of readings in each step, `etch` and `polish`, and one record in `tests`: its yield.
Wafers are numbered over all partitions, and `lot` of them that follow each other are a lot. A lot is over
when nothing of its wafers comes any more; its tests say when that is (`closes`).

The yield follows from hidden properties of the wafer, which the readings show with some noise. By how much
a property counts drifts slowly, so a model has to learn all the time, and one that has forgotten what it
knew needs a while until it predicts well again. All numbers are whole, a yield is in hundredths of a point.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final

import numpy as np

from snapline.batch import Column
from snapline.workload.common.base import Params
from snapline.workload.common.generated import Generated, Ints, draw
from snapline.workload.common.settings import Setting, values_of

STEPS: Final = ("etch", "polish")
TESTS: Final = "tests"
CELLS: Final = 1_000
"""Joins are by cell, so that their windows together have as many rows as SPADE's have."""

FEATURES_MAX: Final = 3  # properties of a wafer that the readings of a step show
TOOLS: Final[Mapping[str, int]] = MappingProxyType({"etch": 12, "polish": 11})
"""How many tools do a step: each has an offset of its own, where readings come as the tools give them."""

FEW, MANY = 10, 79
"""How many operators there can be."""

RIDGE: Final = 50
"""What stands for knowing nothing: the equations always have a solution, and the first lot is given 0."""

MEMORY: Final = 32
"""Of what a model knows, this part is forgotten with each lot."""

BIAS: Final = 100
"""A property that is the same for all wafers."""

_LEVELS: Final = 1_000  # a property is from 0 to so many
_NOISE: Final = 120  # of a reading
_YIELD_NOISE: Final = 900
_YIELD_MAX: Final = 10_000
_BASE: Final = 1_500
_WEIGHT, _DRIFT = (
    700,
    900,
)  # hundredths of a point for a property at its highest, and what is added at most

SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType(
    {
        "lot": Setting("how many wafers a lot has", 84, 4, least=1),
        "etch": Setting("readings of a wafer when it is etched", 57, 2, least=1),
        "polish": Setting("readings of a wafer when it is polished", 14, 1, least=1),
        "operators": Setting(f"how many operators there are: {FEW} or {MANY}", FEW, FEW, least=FEW),
        "pools": Setting("1: each model has slots of its own; 0: it has not", 1, 0, most=1),
    }
)


@dataclass(frozen=True, slots=True)
class FabShape:
    """The values of all settings of a run."""

    lot: int
    readings: Mapping[str, int]  # of a wafer, by step
    operators: int
    pools: bool
    wafers: int  # of a partition

    def features(self, step: str) -> int:
        """How many properties of a wafer the readings of a step show."""
        return min(self.readings[step], FEATURES_MAX)


@lru_cache(maxsize=64)
def shape_of(params: Params) -> FabShape:
    """The settings of a run: as given, or as its size says."""
    values = values_of(SETTINGS, params.settings, full=params.full)
    readings = {step: values[step] for step in STEPS}
    wafers = max(params.records // readings["etch"], 1)
    many = values["operators"] > FEW
    return FabShape(values["lot"], readings, MANY if many else FEW, bool(values["pools"]), wafers)


def readings(params: Params, step: str, *, raw: bool = False) -> Generated:
    """The readings of a step; raw ones are as the tools give them."""
    shape = shape_of(params)
    fields = _Readings(step, shape.readings[step], shape.features(step), raw)
    return Generated(step, params, fields, shape.wafers * shape.readings[step])


def tests(params: Params) -> Generated:
    """The tests of the wafers."""
    return Generated(TESTS, params, _tested, shape_of(params).wafers)


@dataclass(frozen=True, slots=True)
class _Readings:
    """The columns of the readings of a step."""

    step: str
    per_wafer: int
    features: int
    raw: bool

    def __call__(self, params: Params, partition: int, offsets: Ints) -> Mapping[str, Column]:
        nth, sensor = np.divmod(offsets, self.per_wafer)
        wafer = nth * params.partitions + partition
        shown = np.zeros(len(offsets), np.int64)
        for feature in range(self.features):
            ours = sensor % self.features == feature
            shown[ours] = _property(params, self.step, feature, wafer[ours])
        value = shown + draw(params, f"{self.step}.noise", partition, offsets, _NOISE)
        columns = {"wafer": wafer, "cell": wafer % CELLS, "sensor": sensor}
        if not self.raw:
            return {**columns, "value": value}
        tool = tool_of(self.step, sensor)
        return {**columns, "tool": tool, "value": value + offset_of(tool)}


def tool_of(step: str, sensor: Ints) -> Ints:
    """The tool of which a sensor is part."""
    return sensor % TOOLS[step]


def offset_of(tool: int | Ints) -> int | Ints:
    """What a tool adds to the values that its sensors should give."""
    return 17 * tool - 60


def _property(params: Params, step: str, feature: int, wafer: Ints) -> Ints:
    return draw(params, f"{step}.{feature}", 0, wafer, _LEVELS)


def _tested(params: Params, partition: int, offsets: Ints) -> Mapping[str, Column]:
    shape, wafer = shape_of(params), offsets * params.partitions + partition
    found = _BASE + draw(params, "tests.noise", partition, offsets, _YIELD_NOISE)
    for turn, step in enumerate(STEPS):
        for feature in range(shape.features(step)):
            weight = _WEIGHT + _drift(params, turn * FEATURES_MAX + feature, wafer)
            found += weight * _property(params, step, feature, wafer) // _LEVELS
    return {
        "wafer": wafer,
        "cell": wafer % CELLS,
        "yield": np.minimum(found, _YIELD_MAX),
        "lot": wafer // shape.lot,
        "closes": closes_ms(params, wafer // shape.lot),
        "line": np.zeros(len(offsets), np.int64),
    }


def _drift(params: Params, which: int, wafer: Ints) -> Ints:
    """What is added to the weight of a property: it rises and falls over the run, each at its own pace."""
    period = max(shape_of(params).wafers * params.partitions // (which + 1), 2)
    return np.abs(wafer % period * 2 - period) * _DRIFT // period


def closes_ms(params: Params, lot: Ints) -> Ints:
    """When a lot is over: from then on nothing comes of its wafers."""
    shape = shape_of(params)
    last = ((lot + 1) * shape.lot - 1) // params.partitions  # the last wafer of any partition
    return (last + 1) * params.duration_ms // shape.wafers + 1
