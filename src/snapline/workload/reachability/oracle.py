"""What is right: paths that must be found, paths that may have been, and the state that must remain.

MUST are the simple paths of the final graph: none of their parts was ever deleted, so no order of
arrival can hide them. MAY are the simple paths over all that was ever inserted with a part that was
deleted: whether they were found depends on what came first. Deletions reach everybody sooner or
later, so the final state holds exactly the links and sources that remain, MUST, and in every task
a tombstone for whatever was deleted.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from snapline.batch import Batch
from snapline.core.policy import Guarantee
from snapline.ids import Millis
from snapline.workload.base import Params, Problem
from snapline.workload.generated import label
from snapline.workload.reachability.model import HOPS_MAX, LINK, SOURCE, events
from snapline.workload.verdict import Findings, judge_rows, rows_of

SINK = "paths"
OPERATOR = "join"

Path: TypeAlias = tuple[int, tuple[int, ...]]
"""The event of the source, and the events of the links in order."""

Facts: TypeAlias = tuple[tuple[int, ...], Millis]
"""The nodes of a path, and the time of its latest part."""


@dataclass(frozen=True, slots=True)
class World:
    """All that was inserted, and what of it was deleted."""

    links: Mapping[int, tuple[int, int, Millis]]  # event -> start, end, time
    sources: Mapping[int, tuple[int, Millis]]  # event -> node, time
    deleted: frozenset[int]

    def alive(self, path: Path) -> bool:
        """Whether no part of a path was deleted."""
        return self.deleted.isdisjoint((path[0], *path[1]))


def world_of(params: Params) -> World:
    """Everything that the events say, whatever the order in which they arrive."""
    rows = rows_of(events(params).everything(), "id", "kind", "start", "end", "time", "target")
    return World(
        {event: (start, end, time) for event, kind, start, end, time, _ in rows if kind == LINK},
        {event: (start, time) for event, kind, start, _, time, _ in rows if kind == SOURCE},
        frozenset(target for *_, target in rows if target >= 0),
    )


def simple_paths(world: World) -> dict[Path, Facts]:
    """The simple paths over all that was ever inserted; a path without links is a bare source."""
    leaving: dict[int, list[int]] = {}
    for link, (start, _, _) in world.links.items():
        leaving.setdefault(start, []).append(link)
    paths: dict[Path, Facts] = {
        (source, ()): ((node,), time) for source, (node, time) in world.sources.items()
    }
    todo = list(paths)
    while todo:
        source, links = todo.pop()
        nodes, time = paths[source, links]
        for link in leaving.get(nodes[-1], ()) if len(links) < HOPS_MAX else ():
            _, end, link_time = world.links[link]
            if end not in nodes:
                paths[source, (*links, link)] = ((*nodes, end), max(time, link_time))
                todo.append((source, (*links, link)))
    return paths


def judge(
    params: Params,
    output: Mapping[str, Batch],
    state: Mapping[str, Mapping[str, Batch]],
    level: Guarantee,
) -> Sequence[Problem]:
    """MUST <= output <= MUST + MAY, no path twice; where it was captured, the final state too."""
    world = world_of(params)
    paths = simple_paths(world)
    found = {path: facts for path, facts in paths.items() if path[1]}
    must = {path: facts for path, facts in found.items() if world.alive(path)}
    may = {path: facts for path, facts in found.items() if path not in must}
    findings = Findings(level)
    judge_rows(findings, must, _paths_in(output.get(SINK)), _describe, optional=may)
    if state and level not in (Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE):
        _judge_state(findings, world, paths, state.get(OPERATOR, {}))
    return findings.problems


def _judge_state(
    findings: Findings, world: World, paths: Mapping[Path, Facts], parts: Mapping[str, Batch]
) -> None:
    links = {link: ends for link, ends in world.links.items() if link not in world.deleted}
    kept = [(row[0], row[1:]) for row in rows_of(parts.get("links"), "id", "start", "end", "time")]
    judge_rows(findings, links, kept, partial(label, "state: link"))
    alive = {path: facts for path, facts in paths.items() if world.alive(path)}
    known = _paths_in(parts.get("paths"))
    judge_rows(findings, alive, known, lambda path: f"state: {_describe(path)}")
    _judge_tombstones(findings, world, Counter(rows_of(parts.get("tombstones"), "id")))


def _judge_tombstones(findings: Findings, world: World, found: "Counter[tuple[int, ...]]") -> None:
    """Every task has every tombstone; how many tasks there are is not known here."""
    tasks = max(found.values(), default=1)
    for event in sorted(world.deleted):
        if found[event,] < tasks:
            because = f"{found[event,]} of {tasks} tasks know of the deletion"
            findings.lack("missing", label("state: tombstone of event", event), because)
    for (event,) in found:
        if event not in world.deleted:
            because = "nobody deleted it"
            findings.excess("invented", label("state: tombstone of event", event), because)


def _paths_in(batch: Batch | None) -> list[tuple[Path, Facts]]:
    rows = rows_of(batch, "source", "links", "nodes", "time")
    return [((source, links), (nodes, time)) for source, links, nodes, time in rows]


def _describe(path: Path) -> str:
    source, links = path
    steps = [label("source", source), *(label("link", link) for link in links)]
    return f"path {' > '.join(steps)}"
