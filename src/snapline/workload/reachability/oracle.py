"""What is right: paths that must be found, paths that may have been, and the state that must remain.

MUST are the simple paths of the final graph: none of their parts was ever deleted, so no order of
arrival can hide them. MAY are the simple paths over all that was ever inserted with a part that was
deleted: whether they were found depends on what came first. Deletions reach everybody sooner or
later, so the final state holds exactly the links and sources that remain, MUST, and in every task
a tombstone for whatever was deleted. Paths are made by length: those of n links give those of n + 1.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from snapline.batch import Batch
from snapline.core.guarantee import Guarantee
from snapline.workload.common.base import Params, Problem
from snapline.workload.common.generated import Ints, label
from snapline.workload.common.lists import gathered, longest, pairs, step_names, with_steps
from snapline.workload.oracles.table_verdict import TableExcuses, judge_table
from snapline.workload.oracles.verdict import LIMIT, Problems
from snapline.workload.reachability.model import HOPS_MAX, LINK, SOURCE, events
from snapline.workload.reachability.stays import of_paths

SINK = "paths"
OPERATOR = "join"

_VALUES = ("nodes", "time")


@dataclass(frozen=True, slots=True)
class Inserted:
    """All links and sources that were ever inserted, with a column `alive`, and the deleted events."""

    links: Batch
    sources: Batch
    deleted: Ints  # events, in order


def world_of(params: Params) -> Inserted:
    """Everything that the events say, whatever the order in which they arrive."""
    everything = events(params).everything()
    kind, target = everything["kind"], everything["target"]
    deleted = np.unique(target[target >= 0])
    inserted = everything.select("id", "start", "end", "time")
    inserted = inserted.with_columns(alive=~np.isin(inserted["id"], deleted))
    return Inserted(inserted.take(kind == LINK), inserted.take(kind == SOURCE), deleted)


def simple_paths(world: Inserted) -> Iterator[Batch]:
    """The simple paths over all that was ever inserted, by length, and whether each is `alive`.

    A path is told by the event of its source and those of its links; without links it is a bare source.
    """
    paths = world.sources.rename({"id": "source"}).select("source", "time", "alive")
    nodes = world.sources["start"][:, None]
    steps = np.zeros((len(paths), 0), np.int64)
    yield paths.with_columns(links=gathered(steps), nodes=gathered(nodes))
    for _ in range(HOPS_MAX):
        i, j = pairs(nodes[:, -1], world.links["start"])
        new = (nodes[i] != world.links["end"][j][:, None]).all(axis=1)
        i, j = i[new], j[new]
        links = world.links.take(j)
        paths = paths.take(i).with_columns(
            time=np.maximum(paths["time"][i], links["time"]),
            alive=paths["alive"][i] & links["alive"],
        )
        nodes = np.column_stack([nodes[i], links["end"]])
        steps = np.column_stack([steps[i], links["id"]])
        yield paths.with_columns(links=gathered(steps), nodes=gathered(nodes))


def judge(
    params: Params,
    output: Mapping[str, Batch],
    state: Mapping[str, Mapping[str, Batch]],
    level: Guarantee,
) -> Sequence[Problem]:
    """MUST <= output <= MUST + MAY, no path twice; where it was captured, the final state too."""
    world = world_of(params)
    bare, *found = simple_paths(world)
    must = [paths.take(paths["alive"]) for paths in found]
    may = [paths.take(~paths["alive"]) for paths in found]
    findings, losses = Problems(level), of_paths(params, world.sources, world.links, SINK)
    _judge_paths(findings, must, may, output.get(SINK), losses=losses)
    strict = level not in (Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE)
    if strict and not findings.problems:
        _judge_ends(findings, output.get(SINK))
    if state and strict and losses is None:  # what was lost is lost from the state, too
        alive = [bare.take(bare["alive"]), *must]
        _judge_state(findings, world, alive, state.get(OPERATOR, {}))
    return findings.problems


def _judge_paths(
    findings: Problems,
    must: Sequence[Batch],
    may: Sequence[Batch],
    found: Batch | None,
    where: str = "",
    losses: TableExcuses | None = None,
) -> None:
    width = HOPS_MAX
    if found is not None and len(found):
        width = max(width, longest(found["links"]))
        found = with_steps(found, "links", width)
    expected, optional = (
        (with_steps(paths, "links", width) for paths in some) for some in (must, may)
    )
    identity = ("source", *step_names(width))
    describe = partial(_describe, where)
    judge_table(findings, expected, found, identity, _VALUES, describe, optional, losses)


def _judge_ends(findings: Problems, found: Batch | None) -> None:
    """Check that the end of a path, where it came out, is the last of its nodes."""
    if found is None or not len(found) or "end" not in found.columns:
        return
    nodes = found["nodes"].compact()
    there = np.flatnonzero(np.diff(nodes.offsets) > 0)
    last = nodes.values[nodes.offsets[1:][there] - 1]
    for row in there[found["end"][there] != last][:LIMIT].tolist():
        path = f"path with the nodes {nodes.to_list()[row]}"
        findings.instead(path, f"it came out with the end {found['end'][row]}")


def _judge_state(
    findings: Problems, world: Inserted, alive: Sequence[Batch], parts: Mapping[str, Batch]
) -> None:
    links = world.links.take(world.links["alive"])
    values = ("start", "end", "time")
    describe = partial(label, "state: link")
    judge_table(findings, [links], parts.get("links"), ("id",), values, describe)
    _judge_paths(findings, alive, (), parts.get("paths"), "state: ")
    _judge_tombstones(findings, world, parts.get("tombstones"))


def _judge_tombstones(findings: Problems, world: Inserted, found: Batch | None) -> None:
    """Check that every task has every tombstone; the most frequent one tells how many tasks there are."""
    ids = found["id"] if found is not None and len(found) else np.zeros(0, np.int64)
    known, counts = np.unique(ids, return_counts=True)
    tasks = counts.max(initial=1)
    everywhere = known[counts == tasks]
    for event in np.setdiff1d(world.deleted, everywhere)[:LIMIT].tolist():
        because = f"{np.count_nonzero(ids == event)} of {tasks} tasks know of the deletion"
        findings.lack("missing", label("state: tombstone of event", event), because)
    for event in np.setdiff1d(known, world.deleted)[:LIMIT].tolist():
        record = label("state: tombstone of event", event)
        findings.excess("invented", record, "nobody deleted it")


def _describe(where: str, source: int, hops: int, *steps: int) -> str:
    links = [label("link", link) for link in steps[:hops]]
    return f"{where}path {' > '.join([label('source', source), *links])}"
