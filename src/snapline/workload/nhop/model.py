"""A stream of directed edges between few nodes."""

from collections.abc import Mapping

from snapline.batch import Column
from snapline.ids import Millis
from snapline.workload.base import Params
from snapline.workload.generated import Generated, Ints, draw

HOPS = 3
"""N: the number of edges in a walk."""


def edges(params: Params) -> Generated:
    """The edges."""
    return Generated("edges", params, _fields, params.records)


def ttl_ms(params: Params) -> Millis:
    """The greatest distance between the due times of two edges of one walk."""
    return params.duration_ms // 4


def node_count(params: Params) -> int:
    """Two nodes for five edges: enough walks to be worth counting, few enough to list."""
    return max(params.partitions * params.records * 2 // 5, 2)


def _fields(params: Params, partition: int, offsets: Ints) -> Mapping[str, Column]:
    nodes = node_count(params)
    return {
        "start": draw(params, "edges.start", partition, offsets, nodes),
        "end": draw(params, "edges.end", partition, offsets, nodes),
    }
