"""What people use to pay: of each bid, figures of the last 20 bids of its bidder (in the small size 3).

The windows are in the order of arrival, as in any flow that says `sliding(rows=n)`. A bidder bids in all
partitions, so this order differs from run to run; the results name the oldest bid of their window, which
tells it.
"""

from snapline.dataflow.graph import Dataflow
from snapline.workload.common.base import Params, Workload
from snapline.workload.habits.oracle import COLUMNS, judge_habits, last_bids
from snapline.workload.nexmark import model
from snapline.workload.nexmark.oracle import SINK


def build(params: Params) -> Dataflow:
    """The dataflow: source, key, windows, sink."""
    flow = Dataflow("habits")
    bids = flow.source(model.bids(params, COLUMNS), name="bids").key_by("bidder")
    figures = bids.sliding(rows=last_bids(params)).aggregate(
        id=("last", "id"),
        rows="count",
        oldest=("first", "id"),
        price=("last", "price"),
        total=("sum", "price"),
        average=("mean", "price"),
        lowest=("min", "price"),
        highest=("max", "price"),
        name="habits",
    )
    figures.sink(SINK)
    return flow


HABITS = Workload(
    "habits",
    "what each bidder pays: the last bids, in the order of their arrival",
    False,
    build,
    judge_habits,
    judges_prefix=True,
    judges_losses=True,
)
