"""Links and sources that appear and disappear: 60 % new links, 15 % new sources, 20 % and 5 % deletions.

A link or a source is identified by the event that inserted it (the record's `id`); a deletion names
that event in `target`. It is drawn from the inserts at earlier offsets of any partition, and may
name one that is deleted already. Kinds follow a fixed pattern, so the shares are exact and the n-th
link is found by arithmetic.

A hot node is one from which many links start. Their ends are scattered, and it is not a source more often
than others, because with a node that is hot at both ends paths would multiply without bound.
"""

from collections.abc import Mapping

import numpy as np

from snapline.batch import Column
from snapline.workload.common.base import Params
from snapline.workload.common.generated import (
    PARTITION_BITS,
    Generated,
    Ints,
    draw,
    heated,
    next_of,
)

LINK, SOURCE, LINK_GONE, SOURCE_GONE = range(4)
HOPS_MAX = 4
"""The greatest number of links in a path."""

NODES_FULL = 1_000_000

_PATTERN = np.array(["LSuw".index(kind) for kind in "LSLLuLLLSLuLLuLwLSLu"])
_PERIOD = len(_PATTERN)
_START = "events.start"


def events(params: Params) -> Generated:
    """Inserts and deletions of links and sources."""
    return Generated("events", params, _fields, params.records)


def node_count(params: Params) -> int:
    """The number of nodes: the paper's million, or as many as links, so that paths do not multiply."""
    return NODES_FULL if params.full else max(params.partitions * params.records * 3 // 5, 8)


def _fields(params: Params, partition: int, offsets: Ints) -> Mapping[str, Column]:
    nodes = node_count(params)
    kind = _PATTERN[offsets % _PERIOD]
    start = draw(params, _START, partition, offsets, nodes)
    hottest = next_of(params, _START, nodes)
    hot = heated(params, _START, partition, offsets, params.records, start, hottest)
    start = np.where(kind == LINK, hot, start)
    step = 1 + draw(params, "events.step", partition, offsets, nodes - 1)
    target_partition = draw(params, "events.partition", partition, offsets, params.partitions)
    target = np.full(len(offsets), -1, np.int64)
    for gone, insert in ((LINK_GONE, LINK), (SOURCE_GONE, SOURCE)):
        at = kind == gone
        before = _count_before(insert, offsets[at])
        chosen = draw(params, "events.target", partition, offsets[at], before)
        target[at] = _nth(insert, chosen) + (target_partition[at] << PARTITION_BITS)
    return {
        "kind": kind.astype(np.int8),
        "start": start,
        "end": np.where(kind == LINK, (start + step) % nodes, start),
        "target": target,
    }


def _count_before(kind: int, offsets: Ints) -> Ints:
    """How many events of a kind have a smaller offset in a partition."""
    is_kind = kind == _PATTERN
    within = np.concatenate([[0], np.cumsum(is_kind)])
    count: Ints = offsets // _PERIOD * np.count_nonzero(is_kind) + within[offsets % _PERIOD]
    return count


def _nth(kind: int, number: Ints) -> Ints:
    """The offset of the n-th event of a kind, counted from 0."""
    places = np.flatnonzero(kind == _PATTERN)
    offset: Ints = number // len(places) * _PERIOD + places[number % len(places)]
    return offset
