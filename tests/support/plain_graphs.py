"""The oracles of the graph workloads in their plainest form: what the fast ones must say.

Slow, and easy to believe: a path is a tuple, and each is looked at alone.
"""

from collections import Counter
from dataclasses import dataclass
from functools import partial

from snapline.core.guarantee import Guarantee
from snapline.workload.common.generated import label
from snapline.workload.nhop import model as nhop
from snapline.workload.oracles.verdict import Problems, judge_rows, rows_of
from snapline.workload.reachability import model as reachability


@dataclass(frozen=True)
class World:
    links: dict  # event -> start, end, time
    sources: dict  # event -> node, time
    deleted: frozenset

    def alive(self, path):
        source, links = path
        return self.deleted.isdisjoint((source, *links))


def world_of(params):
    columns = ("id", "kind", "start", "end", "time", "target")
    rows = rows_of(reachability.events(params).everything(), *columns)
    return World(
        {e: (start, end, t) for e, kind, start, end, t, _ in rows if kind == reachability.LINK},
        {e: (start, t) for e, kind, start, _, t, _ in rows if kind == reachability.SOURCE},
        frozenset(target for *_, target in rows if target >= 0),
    )


def simple_paths(world):
    """(source, links) -> nodes and time; a path without links is a bare source."""
    leaving = {}
    for link, (start, _, _) in world.links.items():
        leaving.setdefault(start, []).append(link)
    paths = {(source, ()): ((node,), time) for source, (node, time) in world.sources.items()}
    todo = list(paths)
    while todo:
        source, links = todo.pop()
        nodes, time = paths[source, links]
        for link in leaving.get(nodes[-1], ()) if len(links) < reachability.HOPS_MAX else ():
            _, end, link_time = world.links[link]
            if end not in nodes:
                paths[source, (*links, link)] = ((*nodes, end), max(time, link_time))
                todo.append((source, (*links, link)))
    return paths


def judge_reachability(params, output, state, level):
    world = world_of(params)
    paths = simple_paths(world)
    found = {path: facts for path, facts in paths.items() if path[1]}
    must = {path: facts for path, facts in found.items() if world.alive(path)}
    may = {path: facts for path, facts in found.items() if path not in must}
    findings = Problems(level)
    judge_rows(findings, must, paths_in(output.get("paths")), describe_path, optional=may)
    if state and level not in (Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE):
        parts = state.get("join", {})
        judge_links(findings, world, parts.get("links"))
        alive = {path: facts for path, facts in paths.items() if world.alive(path)}
        known = paths_in(parts.get("paths"))
        judge_rows(findings, alive, known, lambda path: f"state: {describe_path(path)}")
        judge_tombstones(findings, world, Counter(rows_of(parts.get("tombstones"), "id")))
    return findings.problems


def judge_links(findings, world, batch):
    links = {link: ends for link, ends in world.links.items() if link not in world.deleted}
    kept = [(row[0], row[1:]) for row in rows_of(batch, "id", "start", "end", "time")]
    judge_rows(findings, links, kept, partial(label, "state: link"))


def judge_tombstones(findings, world, found):
    tasks = max(found.values(), default=1)
    for event in sorted(world.deleted):
        if found[event,] < tasks:
            because = f"{found[event,]} of {tasks} tasks know of the deletion"
            findings.lack("missing", label("state: tombstone of event", event), because)
    for (event,) in found:
        if event not in world.deleted:
            because = "nobody deleted it"
            findings.excess("invented", label("state: tombstone of event", event), because)


def paths_in(batch):
    rows = rows_of(batch, "source", "links", "nodes", "time")
    return [((source, links), (nodes, time)) for source, links, nodes, time in rows]


def describe_path(path):
    source, links = path
    steps = [label("source", source), *(label("link", link) for link in links)]
    return f"path {' > '.join(steps)}"


def walks_of(params):
    """The edges of a walk -> start, end, and the times of its earliest and its latest edge."""
    rows = rows_of(nhop.edges(params).everything(), "id", "start", "end", "time")
    leaving = {}
    for edge, start, end, time in rows:
        leaving.setdefault(start, []).append((edge, end, time))
    walks = {(e,): (start, end, time, time) for e, start, end, time in rows}
    for _ in range(nhop.HOPS - 1):
        walks = {
            (*walk, edge): (start, end, min(first, time), max(last, time))
            for walk, (start, middle, first, last) in walks.items()
            for edge, end, time in leaving.get(middle, ())
            if max(last, time) - min(first, time) <= nhop.ttl_ms(params)
        }
    return walks


def judge_nhop(params, output, state, level):
    columns = ("edges", "start", "end", "first", "time")
    rows = [(row[0], row[1:]) for row in rows_of(output.get("walks"), *columns)]
    findings = Problems(level)
    judge_rows(findings, walks_of(params), rows, describe_walk)
    return findings.problems


def describe_walk(walk):
    return f"walk {' > '.join(label('edge', edge) for edge in walk)}"
