"""The dataflow of the counting job: source, key, count, sink."""

from snapline.dataflow.graph import Dataflow
from snapline.workload.common.answers import AnswerColumns
from snapline.workload.common.base import Params, Workload
from snapline.workload.counting.model import records
from snapline.workload.counting.oracle import SINK, judge, right_counts


def build(params: Params) -> Dataflow:
    """The dataflow."""
    flow = Dataflow("counting")
    flow.source(records(params), name="records").key_by("key").count(name="count").sink(SINK)
    return flow


COUNTING = Workload(
    "counting",
    "a running count per key: the smallest job",
    False,
    build,
    judge,
    judges_prefix=True,
    judges_losses=True,
    answer=AnswerColumns(SINK, ("key",), ("count",), replaces=True),
    right_answer=right_counts,
)
