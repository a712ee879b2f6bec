"""Where the records of a lot are, and for how long: what a loss touches (`common.losses`).

Of a lot it matters whether the row itself was lost, whether some of its records were, and whether a model
may have learnt anything else than it should have before it predicted the lot.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from snapline.batch import Batch
from snapline.workload.common.base import Params
from snapline.workload.common.generated import PARTITION_BITS, Ints
from snapline.workload.common.losses import Bools, Excuses, Stay, stay_of
from snapline.workload.fab import model
from snapline.workload.fab.model import MANY, STEPS, TESTS, shape_of


@dataclass(frozen=True, slots=True)
class LotLosses:
    """What losses touch of each lot; all by the number of the lot."""

    excuses: Excuses
    gone: Bools  # its row need not come out
    fewer: Bools  # some of its wafers need not have been there
    unknown: Bools  # what is predicted for it may be anything
    again: Bools  # its row may come more than once


def lot_losses(params: Params, excuses: Excuses, lots: Batch, sink: str) -> LotLosses:
    """What the losses of a run touch; `lots` has all lots, in their order."""
    count, closes = len(lots), lots["time"]
    none, mine = np.zeros(count, np.bool_), (lots["lot"],)
    key = (np.zeros(count, np.int64),)
    opens = np.concatenate([[0], closes[:-1]]) if count else closes
    behind = stay_of(("lots", "compare", sink), closes, key=mine)
    gone, fewer, changed, again = none.copy(), none.copy(), none.copy(), excuses.repeated(behind)
    for step in STEPS:
        name = f"{step}-model"
        stay = Stay((name,), key, None, opens, closes, closes)
        pairs = _Pairs(params, step)
        lost, twice = pairs.late(excuses), pairs.repeated(excuses)
        gone |= excuses.late(stay) | _all_of(pairs.lot, lost, count)
        fewer |= _any_of(pairs.lot, lost, count)
        learnt = Stay((name,), key, None, np.zeros_like(closes), closes, closes)
        changed |= excuses.touched(learnt) | _any_of(pairs.lot, lost | twice, count)
        again |= excuses.repeated(stay, stay_of(("lots",), closes, key=mine))
        # A model that went back may predict a lot once more when records of the lot come again.
        again |= excuses.touched(stay) & _any_of(pairs.lot, twice, count)
    gone |= excuses.touched(behind)
    unknown = np.logical_or.accumulate(changed) if count else changed
    return LotLosses(excuses, gone, gone | fewer, unknown, again)


class _Pairs:
    """All readings of a step with the tests of their wafers."""

    def __init__(self, params: Params, step: str) -> None:
        readings, tests = (
            model.readings(params, step).everything(),
            model.tests(params).everything(),
        )
        tests = tests.take(np.argsort(tests["wafer"])).take(readings["wafer"])
        self.lot: Ints = tests["lot"]
        self._params = params
        self._step = step
        self._readings = readings
        self._tests = tests

    def late(self, excuses: Excuses) -> Bools:
        """Which pairs were lost, or may have come when their lot was done."""
        return excuses.late(*self._stays())

    def repeated(self, excuses: Excuses) -> Bools:
        """Which pairs may have come again."""
        return excuses.repeated(*self._stays())

    def _stays(self) -> Iterator[Stay]:
        step, mine, test = self._step, self._readings["time"], self._tests["time"]
        both, key = np.maximum(mine, test), (self._readings["cell"],)
        join, to_model = (f"{step}-tests",), (np.zeros(len(mine), np.int64),)
        from_source = self._readings["id"] >> PARTITION_BITS
        yield stay_of((step,), mine, partition=from_source)
        if shape_of(self._params).operators == MANY:
            yield from self._of_tools(from_source)
        yield stay_of((TESTS,), test, partition=self._tests["id"] >> PARTITION_BITS)
        yield stay_of(join, mine, key=key, until=both)
        yield stay_of(join, test, key=key, until=both)
        yield stay_of(join, both, key=key)
        yield stay_of((f"{step}-model",), both, key=to_model, until=self._tests["closes"])

    def _of_tools(self, partition: Ints) -> Iterator[Stay]:
        """The stays of readings on their way through the operators of their tools."""
        step, time = self._step, self._readings["time"]
        tools = model.tool_of(step, self._readings["sensor"])
        never = np.iinfo(np.int64).max
        for tool in range(model.TOOLS[step]):
            first = np.where(tools == tool, time, never)
            way = tuple(f"{step}-{part}-{tool}" for part in ("tool", "calibrate", "check"))
            yield Stay(way, None, partition, first, time, time)


def _any_of(lots: Ints, chosen: Bools, count: int) -> Bools:
    """Which lots have a pair that is chosen."""
    found: Bools = np.bincount(lots[chosen], minlength=count) > 0
    return found


def _all_of(lots: Ints, chosen: Bools, count: int) -> Bools:
    """Which lots have only pairs that are chosen."""
    found: Bools = np.bincount(lots[~chosen], minlength=count) == 0
    return found
