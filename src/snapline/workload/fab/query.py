"""FAB as a dataflow: two joins of readings with tests, two models, and a third join of what they predict.

SPADE's paper says of it: 79 operators, three joins, two of them with windows of 512,000 and 128,000 tuples,
two statistical models in operators of its own, 9,000 wafers, and 107 predictions that are compared with the
yield that was measured. A wafer then has 57 and 14 readings, and a lot 84 wafers. With 10 operators there
are three sources, the joins, the models, what compares predictions with the truth, and the sink. With 79,
the readings of each of 23 tools pass three operators of their own before the join.

The joins are of sliding windows by rows, in 1,000 cells, so that nobody has to look at a whole window. How
large the third one is the paper does not say.
"""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

import numpy as np

from snapline.batch import Array, Batch
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.stream import Stream
from snapline.workload.common.answers import AnswerColumns
from snapline.workload.common.base import Params, Workload
from snapline.workload.fab import model
from snapline.workload.fab.model import MANY, SETTINGS, STEPS, TESTS, TOOLS, shape_of
from snapline.workload.fab.oracle import SINK, expected, judge
from snapline.workload.fab.regression import YieldModel

ROWS: Final[Mapping[str, int]] = MappingProxyType({"etch": 512, "polish": 128})
"""Of each of 1,000 cells: 512,000 and 128,000 rows in all."""

TEST_ROWS: Final = 16
LOT_ROWS: Final = 16


def same_wafer(left: Batch, right: Batch) -> Array:
    """Whether a reading and a test are of the same wafer."""
    same: Array = left["wafer"] == right["wafer"]
    return same


def compared(pairs: Batch) -> Batch:
    """What both models predict, on average, and how far off that is, in hundredths of a point."""
    predicted = (pairs["predicted"] + pairs["predicted_right"]) // 2
    return Batch(
        {
            "lot": pairs["lot"],
            "wafers": np.minimum(pairs["wafers"], pairs["wafers_right"]),
            "predicted": predicted,
            "actual": pairs["actual"],
            "quality": predicted - pairs["actual"],
            "time": pairs["time"],
        }
    )


def of_tool(tool: int, readings: Batch) -> Array:
    """Whether readings come from this tool."""
    ours: Array = readings["tool"] == tool
    return ours


def calibrated(tool: int, readings: Batch) -> Batch:
    """The readings of a tool as they should be."""
    return readings.with_columns(value=readings["value"] - model.offset_of(tool))


def plausible(readings: Batch) -> Array:
    """Whether readings can be right."""
    right: Array = readings["value"] >= 0
    return right


def build(params: Params) -> Dataflow:
    """Predicted quality against true yield, for each lot."""
    shape, flow = shape_of(params), Dataflow("fab")
    tested = flow.source(model.tests(params), name=TESTS)
    predictions = []
    for step in STEPS:
        windows = _readings(flow, params, step).key_by("cell").sliding(rows=ROWS[step])
        tests = tested.key_by("cell").sliding(rows=TEST_ROWS)
        wafers = windows.join(tests, on=same_wafer, name=f"{step}-tests")
        learner = partial(YieldModel, shape.features(step))
        predicted = wafers.key_by("line").apply(learner, name=f"{step}-model")
        if shape.pools:
            predicted = predicted.pool(f"{step}-model")
        predictions.append(predicted.key_by("lot").sliding(rows=LOT_ROWS))
    both = predictions[0].join(predictions[1], name="lots")
    both.map(compared, name="compare").sink(SINK)
    return flow


def _readings(flow: Dataflow, params: Params, step: str) -> Stream:
    """The readings of a step, from one source; with many operators through those of each tool."""
    many = shape_of(params).operators == MANY
    source = flow.source(model.readings(params, step, raw=many), name=step)
    if not many:
        return source
    ways = []
    for tool in range(TOOLS[step]):
        way = source.filter(partial(of_tool, tool), name=f"{step}-tool-{tool}")
        way = way.map(partial(calibrated, tool), name=f"{step}-calibrate-{tool}")
        ways.append(way.filter(plausible, name=f"{step}-check-{tool}"))
    return ways[0].union(*ways[1:])


FAB = Workload(
    "fab",
    "SPADE's FAB: three joins, and two models that predict the yield of lots",
    False,
    build,
    judge,
    SETTINGS,
    judges_losses=True,
    answer=AnswerColumns(SINK, ("lot",), ("predicted",)),
    right_answer=expected,
)
