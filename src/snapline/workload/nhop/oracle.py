"""What is right: every walk of N edges within the TTL, once.

Walks grow by an edge at a time, all together. The join is one of nodes and of times: a walk meets the edges
that leave its end and were due in the same stretch of one TTL as its earliest edge, in the one before, or
in the one behind; all others are too far away.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from snapline.batch import Batch
from snapline.core.guarantee import Guarantee
from snapline.ids import Millis
from snapline.workload.common.base import Params, Problem
from snapline.workload.common.generated import PARTITION_BITS, Ints, label
from snapline.workload.common.lists import gathered, longest, pairs, step_names, with_steps
from snapline.workload.common.losses import Stay, losses_of, stay_of
from snapline.workload.nhop.model import HOPS, edges, ttl_ms
from snapline.workload.oracles.table_verdict import TableExcuses, judge_table
from snapline.workload.oracles.verdict import Problems

SINK = "walks"

_VALUES = ("start", "end", "first", "time")


def walks_of(params: Params) -> Batch:
    """All walks of N edges whose due times span at most the TTL, with their ends and times."""
    known = edges(params).everything()
    ttl = ttl_ms(params)
    steps = known["id"][:, None]
    walks = Batch({**known.select("start", "end", "time").columns, "first": known["time"]})
    for _ in range(HOPS - 1):
        i, j = _near(walks, known, max(ttl, 1))
        time = known["time"][j]
        longer = walks.take(i).with_columns(
            end=known["end"][j],
            first=np.minimum(walks["first"][i], time),
            time=np.maximum(walks["time"][i], time),
        )
        kept = longer["time"] - longer["first"] <= ttl
        walks = longer.take(kept)
        steps = np.column_stack([steps[i[kept]], known["id"][j[kept]]])
    return walks.with_columns(edges=gathered(steps))


def _near(walks: Batch, known: Batch, length: Millis) -> tuple[Ints, Ints]:
    """Pairs of walks i and edges j that leave their ends, and are due in neighbouring stretches of time."""
    first, time = walks["first"] // length + 1, known["time"] // length + 1
    stretches = int(max(time.max(initial=0), first.max(initial=0))) + 2
    leaving = known["start"] * stretches + time
    ends = walks["end"] * stretches + first
    found = [pairs(ends + distance, leaving) for distance in (-1, 0, 1)]
    return np.concatenate([i for i, _ in found]), np.concatenate([j for _, j in found])


def judge(
    params: Params,
    output: Mapping[str, Batch],
    state: Mapping[str, Mapping[str, Batch]],
    level: Guarantee,
) -> Sequence[Problem]:
    """Compare the walks that came out with those that the input has."""
    found = output.get(SINK)
    width = HOPS
    if found is not None and len(found):
        width = max(width, longest(found["edges"]))
        found = with_steps(found, "edges", width)
    right = with_steps(walks_of(params), "edges", width)
    findings = Problems(level)
    losses = _losses(params)
    judge_table(findings, [right], found, step_names(width), _VALUES, _describe, losses=losses)
    return findings.problems


def _losses(params: Params) -> TableExcuses | None:
    """Where walks are lost: an edge, or a route, on its way to a task of the join, or waiting there."""
    excuses = losses_of(params)
    return None if excuses is None else TableExcuses(excuses, partial(_stays, params))


def _stays(params: Params, walks: Batch) -> list[Stay]:
    known = edges(params).everything()
    _, *steps = step_names(HOPS)
    hops = [known.take(np.searchsorted(known["id"], walks[step])) for step in steps]
    stays: list[Stay] = []
    met = hops[0]["time"]  # when the route so far was complete
    for number, edge in enumerate(hops):
        ways = ("edges",) if number else ("edges", "routes")
        stays.append(stay_of(ways, edge["time"], partition=edge["id"] >> PARTITION_BITS))
        if (
            number
        ):  # the route and the edge meet in the node where the one ends and the other starts
            node, both = (edge["start"],), np.maximum(met, edge["time"])
            stays.append(stay_of(("join",), met, key=node, until=both))
            stays.append(stay_of(("join",), edge["time"], key=node, until=both))
            stays.append(stay_of(("join", "extend", SINK), both, key=node))
            met = both
    return stays


def _describe(hops: int, *steps: int) -> str:
    return f"walk {' > '.join(label('edge', edge) for edge in steps[:hops])}"
