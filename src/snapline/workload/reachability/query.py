"""The dataflow of the reachability query: a join on a cycle.

    events -+-> inserts ---- (by start) -+-> join --> extend -+-> paths
            +-> deletions -- (to all) ---+                    |
                                         +----- (by end) -----+  feedback

A source is a path without links. The join keeps paths by the node in which they end and links by
the node from which they start, and pairs each with the other, whichever comes first; `extend` is
the select and the project of the paper: it drops pairs that would pass a node twice and makes
longer paths of the others. Paths of full length go round too, only to be remembered.

Deletions go to every task of the join and leave a tombstone there, so it does not matter whether a
deletion comes before or after what it deletes: whatever arrives is checked against the tombstones,
and whatever is stored is removed when the tombstone comes. Tombstones stay for ever: nobody knows
when the last path with a deleted part has gone round.
"""

from collections.abc import Sequence
from operator import itemgetter
from typing import Final

import numpy as np

from snapline.batch import Batch
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.operators.operator import OUT, Capture, Operator, Outputs
from snapline.workload.common.base import Params, Workload
from snapline.workload.common.generated import Ints
from snapline.workload.common.lists import any_item, append, empty_lists, list_lengths
from snapline.workload.reachability.living import Living, Tombstones
from snapline.workload.reachability.model import HOPS_MAX, LINK, SOURCE, events
from snapline.workload.reachability.oracle import OPERATOR, SINK, judge

INSERTS, DELETIONS, FOUND = "inserts", "deletions", "found"

_LINK = ("id", "time", "start", "end")
_NOWHERE = -1


class PathJoin(Operator):
    """Pairs paths with the links that leave the node in which they end."""

    def __init__(self) -> None:
        self._tombstones: Final = Tombstones()
        self._links: Final = Living(self._tombstones, itemgetter("start"), _link_events)
        self._paths: Final = Living(self._tombstones, _growing_ends, _path_events)

    def process(self, port: str, batch: Batch) -> Outputs:
        """Take inserts, deletions, or paths that were found; return pairs."""
        if port == DELETIONS:
            self._bury(batch["target"])
            return ()
        if port == FOUND:
            found = [self._add_paths(batch)]
        else:
            kind = batch["kind"]
            links = batch.take(kind == LINK).select(*_LINK)
            # Links first: the sources of the same batch then find them stored.
            found = [self._add_links(links), self._add_paths(_bare(batch.take(kind == SOURCE)))]
        return tuple((OUT, pair) for pair in found if pair.length)

    def _add_links(self, links: Batch) -> Batch:
        links = self._links.add(links)
        j, i = self._paths.find(links["start"])
        return _pairs(self._paths.view(), i, links, j)

    def _add_paths(self, paths: Batch) -> Batch:
        paths = self._paths.add(paths)
        i, j = self._links.find(_growing_ends(paths))
        return _pairs(paths, i, self._links.view(), j)

    def _bury(self, targets: Ints) -> None:
        new = self._tombstones.add(targets)
        self._links.remove(new)
        self._paths.remove(new)

    def capture(self, *, full: bool) -> Capture:
        """Links, paths and tombstones: all that are left, or all that are new."""
        parts = {
            "links": self._links.capture(full=full),
            "paths": self._paths.capture(full=full),
            "tombstones": self._tombstones.capture(full=full),
        }
        return Capture(full, parts)

    def restore(self, captures: Sequence[Capture]) -> None:
        """Take back a state. Tombstones come first: they decide which captured rows were removed since."""
        self._tombstones.restore([capture.parts["tombstones"] for capture in captures])
        self._links.restore([capture.parts["links"] for capture in captures])
        self._paths.restore([capture.parts["paths"] for capture in captures])


def _link_events(links: Batch) -> tuple[Ints, Ints]:
    """A link is made of the event that inserted it."""
    return np.arange(links.length), links["id"]


def _path_events(paths: Batch) -> tuple[Ints, Ints]:
    """A path is made of its source and its links."""
    rows = np.arange(paths.length)
    links = paths["links"].compact()
    positions = np.concatenate([rows, np.repeat(rows, list_lengths(links))])
    return positions, np.concatenate([paths["source"], links.values])


def _growing_ends(paths: Batch) -> Ints:
    """Where links may be added: the end of a path, or nowhere if it has its full length."""
    ends: Ints = np.where(list_lengths(paths["links"]) < HOPS_MAX, paths["end"], _NOWHERE)
    return ends


def _bare(sources: Batch) -> Batch:
    """Sources as paths without links."""
    node = sources["start"]
    none = empty_lists(sources.length)
    columns = {"source": sources["id"], "time": sources["time"], "end": node}
    return Batch({**columns, "links": none, "nodes": append(none, node)}, sources.length)


def _pairs(paths: Batch, i: Ints, links: Batch, j: Ints) -> Batch:
    """Paths i, each with one of the links j."""
    if not len(i):
        return Batch({}, 0)
    return paths.take(i).with_columns(
        link=links["id"][j], link_end=links["end"][j], link_time=links["time"][j]
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
        PathJoin,
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
    judges_prefix=True,
    judges_losses=True,
)
