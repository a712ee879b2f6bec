"""Where paths are lost: a link, or a path so far, on its way to a task of the join, or waiting there."""

from collections.abc import Iterator, Sequence

import numpy as np

from snapline.batch import Batch
from snapline.workload.common.base import Params
from snapline.workload.common.generated import PARTITION_BITS
from snapline.workload.common.lists import list_lengths, spread
from snapline.workload.common.losses import Stay, losses_of, stay_of
from snapline.workload.oracles.table_verdict import TableExcuses


def of_paths(params: Params, sources: Batch, links: Batch, sink: str) -> TableExcuses | None:
    """What losses touch of paths, which have a column `source` and lists of `links` and `nodes`."""

    def stays(paths: Batch) -> Sequence[Stay]:
        return tuple(_stays(paths, sources, links, sink)) if len(paths) else ()

    excuses = losses_of(params)
    return None if excuses is None else TableExcuses(excuses, stays)


def _stays(paths: Batch, sources: Batch, links: Batch, sink: str) -> Iterator[Stay]:
    """The stays of paths that all have the same number of links."""
    hops = int(list_lengths(paths["links"])[0])
    steps, nodes = spread(paths["links"], hops), spread(paths["nodes"], hops + 1)
    begins = sources.take(np.searchsorted(sources["id"], paths["source"]))
    met = begins["time"]  # when the path so far was complete
    yield stay_of(("events", "inserts"), met, partition=begins["id"] >> PARTITION_BITS)
    for number in range(hops):
        link = links.take(np.searchsorted(links["id"], steps[:, number]))
        node, both = (np.ascontiguousarray(nodes[:, number]),), np.maximum(met, link["time"])
        yield stay_of(("events", "inserts"), link["time"], partition=link["id"] >> PARTITION_BITS)
        yield stay_of(("join",), met, key=node, until=both)
        yield stay_of(("join",), link["time"], key=node, until=both)
        yield stay_of(("join", "extend", sink), both, key=node)
        met = both
