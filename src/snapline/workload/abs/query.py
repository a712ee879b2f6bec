"""The dataflow: source, unpack, and three running counts with a shuffle before each, sink."""

from functools import partial
from typing import Final

from snapline.batch import Batch
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.operators.fold import COUNT, Count
from snapline.dataflow.operators.operator import OUT, Outputs
from snapline.dataflow.stream import Stream
from snapline.workload.abs.model import STAGES, AbsStage, records
from snapline.workload.abs.oracle import SINK, judge
from snapline.workload.common.base import Params, Workload


class Tally(Count):
    """A running count per key that passes its records on, each with its count."""

    def __init__(self, stage: AbsStage) -> None:
        super().__init__((stage.key,))
        self._stage: Final = stage
        self.reads = None  # it passes records on, so it needs all their columns

    def process(self, port: str, batch: Batch) -> Outputs:
        """Number the records of each key."""
        counts = self._state.count_up(COUNT, [batch[self._stage.key]])
        return ((OUT, batch.with_columns(**{self._stage.count: counts})),)


def unpack(params: Params, batch: Batch) -> Batch:
    """The three keys of each record in the place of the one number."""
    packed, keys = batch["packed"], {}
    for stage in reversed(STAGES):
        rest = packed // stage.keys(params)
        keys[stage.key] = packed - rest * stage.keys(params)
        packed = rest
    return batch.select("id", "time").with_columns(**keys)


def build(params: Params) -> Dataflow:
    """The dataflow."""
    flow = Dataflow("abs")
    stream: Stream = flow.source(records(params), name="records")
    stream = stream.map(partial(unpack, params), name="unpack")
    for stage in STAGES:
        tally = partial(Tally, stage)
        stream = stream.key_by(stage.key).apply(tally, name=f"count-{stage.key}")
    stream.sink(SINK)
    return flow


ABS = Workload(
    "abs",
    "ABS's evaluation job: three shuffles, a count after each",
    False,
    build,
    judge,
    judges_prefix=True,
    judges_losses=True,
)
