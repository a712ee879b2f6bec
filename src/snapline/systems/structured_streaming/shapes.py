"""What a query of Structured Streaming has to know of its workload: windows, disorder, constants.

All of it comes from where the workload is defined, so that the system under test answers the same question.
"""

from dataclasses import dataclass

from snapline.ids import Millis
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params
from snapline.workload.lineage import model as lineage
from snapline.workload.lineage.oracle import SINK
from snapline.workload.nexmark import oracle as nexmark


@dataclass(frozen=True, slots=True)
class QueryShape:
    """The parameters of a workload on which its query depends."""

    sink: str  # what the judge calls the output
    window_ms: Millis
    delay_ms: Millis  # how far the watermark stands back: as far as the input is out of order
    euros_per_1000_dollars: int = nexmark.EUROS_PER_1000_DOLLARS
    states: tuple[str, ...] = nexmark.LOCAL_STATES
    category: int = nexmark.CATEGORY


def shape_of(workload: str, params: Params) -> QueryShape:
    """The shape of a workload of this size."""
    if WORKLOADS[workload].lineage is not None:
        shape = lineage.shape_of(params)
        return QueryShape(SINK, shape.window_ms, shape.disorder_ms)
    return QueryShape(nexmark.SINK, nexmark.window_ms(params), nexmark.DISORDER_MS)


def flush_ms(workload: str, params: Params) -> Millis | None:
    """An event time that closes all windows once it is seen; None if no output waits for a window."""
    if WORKLOADS[workload].lineage is None:
        return None
    shape = shape_of(workload, params)
    return params.duration_ms + shape.delay_ms + 2 * shape.window_ms
