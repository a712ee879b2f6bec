"""The dataflow of the reachability query: a join on a cycle.

    events -+-> inserts ---- (by start) -+-> join --> extend -+-> paths
            +-> deletions -- (to all) ---+                    |
                                         +----- (by end) -----+  feedback

A source is a path without links. The join keeps paths by the node in which they end and links by
the node from which they start, and pairs each with the other, whichever comes first; `extend` is
the select and the project of the paper: it drops pairs that would pass a node twice and makes
longer paths of the others. Paths of full length go round too, only to be remembered.

Deletions go to every task of the join and leave a tombstone there, so it does not matter whether a
deletion comes before or after what it deletes: whatever arrives is held against the tombstones,
whatever is stored goes when the tombstone comes. Tombstones stay for ever: nobody knows when the
last path with a deleted part has gone round. A batch costs a pass over the state, which is small.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from snapline.batch import Batch, Schema, concat
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.operator import OUT, Capture, Operator, Outputs
from snapline.workload.base import Params, Workload
from snapline.workload.generated import Ints
from snapline.workload.lists import any_item, append, empty_lists, list_lengths, pairs
from snapline.workload.reachability.model import HOPS_MAX, LINK, SOURCE, events
from snapline.workload.reachability.oracle import OPERATOR, SINK, judge

INSERTS, DELETIONS, FOUND = "inserts", "deletions", "found"

_LINKS: Schema = {"id": "int64", "time": "int64", "start": "int64", "end": "int64"}
_PATHS: Schema = {
    "source": "int64",
    "time": "int64",
    "end": "int64",
    "links": "list",
    "nodes": "list",
}
_TOMBSTONES: Schema = {"id": "int64"}


class Join(Operator):
    """Pairs paths with the links that leave the node in which they end."""

    def __init__(self) -> None:
        self._links = Batch.empty(_LINKS)  #: alive as far as this task knows
        self._paths = Batch.empty(_PATHS)  #: the same, bare sources included
        self._tombstones: Ints = np.zeros(0, np.int64)  #: deleted events, sorted

    def process(self, port: str, batch: Batch) -> Outputs:
        """Take inserts, deletions, or paths that were found; return pairs."""
        if port == DELETIONS:
            self._bury(batch["target"])
            return ()
        if port == FOUND:
            found = [self._add_paths(batch)]
        else:
            kind = batch["kind"]
            links = batch.take(kind == LINK).select(*_LINKS)
            # Links first: the sources of the same batch then find them stored.
            found = [self._add_links(links), self._add_paths(_bare(batch.take(kind == SOURCE)))]
        return tuple((OUT, pair) for pair in found if pair.length)

    def _add_links(self, links: Batch) -> Batch:
        links = links.take(~self._is_gone(links["id"]))
        self._links = concat([self._links, links])
        return _joined(self._paths, links)

    def _add_paths(self, paths: Batch) -> Batch:
        paths = paths.take(~self._has_gone_part(paths))
        self._paths = concat([self._paths, paths])
        return _joined(paths, self._links)

    def _bury(self, targets: Ints) -> None:
        self._tombstones = np.union1d(self._tombstones, targets)
        self._links = self._links.take(~self._is_gone(self._links["id"]))
        self._paths = self._paths.take(~self._has_gone_part(self._paths))

    def _is_gone(self, ids: Ints) -> npt.NDArray[np.bool_]:
        if not len(self._tombstones):
            return np.zeros(len(ids), np.bool_)
        at = np.searchsorted(self._tombstones, ids)
        gone: npt.NDArray[np.bool_] = self._tombstones.take(at, mode="clip") == ids
        return gone

    def _has_gone_part(self, paths: Batch) -> npt.NDArray[np.bool_]:
        links = paths["links"].compact()
        return self._is_gone(paths["source"]) | any_item(links, self._is_gone(links.values))

    def capture(self, *, full: bool) -> Capture:
        """The whole state: no column is ever changed in place, so nothing is copied."""
        tombstones = Batch({"id": self._tombstones})
        parts = {"links": self._links, "paths": self._paths, "tombstones": tombstones}
        return Capture(True, parts)

    def restore(self, captures: Sequence[Capture]) -> None:
        """Take back a state."""
        parts = captures[-1].parts
        self._links, self._paths = parts["links"], parts["paths"]
        self._tombstones = parts["tombstones"]["id"]


def _bare(sources: Batch) -> Batch:
    """Sources as paths without links."""
    node = sources["start"]
    none = empty_lists(sources.length)
    columns = {"source": sources["id"], "time": sources["time"], "end": node}
    return Batch({**columns, "links": none, "nodes": append(none, node)}, sources.length)


def _joined(paths: Batch, links: Batch) -> Batch:
    """Every path that may grow with every link that begins where it ends."""
    paths = paths.take(list_lengths(paths["links"]) < HOPS_MAX)
    i, j = pairs(paths["end"], links["start"])
    taken = links.take(j)
    return paths.take(i).with_columns(
        link=taken["id"], link_end=taken["end"], link_time=taken["time"]
    )


def extend(joined: Batch) -> Batch:
    """Drop pairs whose link leads back into the path; make longer paths of the others."""
    nodes = joined["nodes"].compact()
    ends = np.repeat(joined["link_end"], list_lengths(nodes))
    kept = joined.take(~any_item(nodes, nodes.values == ends))
    end = kept["link_end"]
    return Batch(
        {
            "source": kept["source"],
            "time": np.maximum(kept["time"], kept["link_time"]),
            "end": end,
            "links": append(kept["links"], kept["link"]),
            "nodes": append(kept["nodes"], end),
        },
        kept.length,
    )


def build(params: Params) -> Dataflow:
    """The dataflow."""
    flow = Dataflow("reachability")
    stream = flow.source(events(params), name="events")
    inserts = stream.filter(lambda b: b["kind"] <= SOURCE, name=INSERTS)
    deletions = stream.filter(lambda b: b["kind"] > SOURCE, name=DELETIONS)
    loop = flow.feedback(FOUND)
    joined = inserts.key_by("start").apply(
        Join,
        name=OPERATOR,
        port=INSERTS,
        ports={DELETIONS: deletions.broadcast(), FOUND: loop},
    )
    found = joined.flat_map(extend, name="extend")
    found.key_by("end").feed(loop)
    found.sink(SINK)
    return flow


REACHABILITY = Workload(
    "reachability",
    "all paths from changing sources over changing links, with deletions; cyclic",
    True,
    build,
    judge,
)
