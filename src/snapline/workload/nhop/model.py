"""A stream of directed edges, between so many nodes that the number of walks stays in proportion.

Of e edges in a TTL, between n nodes, each begins about 3 (e / n)^2 walks of three edges, and every run has
a rate of its own. So the nodes follow the rate: at full size there are two for every edge in a TTL, and
three walks for four edges. A hot node is one from which many edges start. Their ends are as scattered
as without it, so a hot node makes one task busy; walks through it are rare, but come many at a time.
"""

from collections.abc import Mapping

from snapline.batch import Column
from snapline.ids import Millis
from snapline.workload.common.base import Params
from snapline.workload.common.generated import Generated, Ints, draw, heated, next_of

HOPS = 3
"""N: the number of edges in a walk."""

TTL_FULL_MS: Millis = 5_000


def edges(params: Params) -> Generated:
    """The edges."""
    return Generated("edges", params, _fields, params.records)


def ttl_ms(params: Params) -> Millis:
    """The greatest distance between the due times of two edges of one walk; the thesis has 5 s."""
    return TTL_FULL_MS if params.full else params.duration_ms // 4


def node_count(params: Params) -> int:
    """The number of nodes; in the small size two for five edges: some walks, but few enough to list."""
    edges = params.partitions * params.records
    if params.full:
        return max(2 * edges * TTL_FULL_MS // max(params.duration_ms, TTL_FULL_MS), 2)
    return max(edges * 2 // 5, 2)


def _fields(params: Params, partition: int, offsets: Ints) -> Mapping[str, Column]:
    nodes = node_count(params)
    field = "edges.start"
    start = draw(params, field, partition, offsets, nodes)
    hottest = next_of(params, field, nodes)
    return {
        "start": heated(params, field, partition, offsets, params.records, start, hottest),
        "end": draw(params, "edges.end", partition, offsets, nodes),
    }
