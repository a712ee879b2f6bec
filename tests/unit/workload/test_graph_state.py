"""The state of the graph workloads: what a batch costs, what a snapshot holds, what a deletion leaves."""

import tracemalloc
from dataclasses import replace
from statistics import median

import numpy as np
import pytest

from interleaver import run
from snapline.batch import Batch
from snapline.core.guarantee import Guarantee
from snapline.core.messages import END_OF_TIME
from snapline.dataflow.state.multi_map import MultiMap
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params
from snapline.workload.nhop import query as nhop
from snapline.workload.nhop.buckets import Buckets, Stretches
from snapline.workload.nhop.model import ttl_ms
from snapline.workload.reachability import living
from snapline.workload.reachability import query as reachability
from snapline.workload.reachability.model import LINK, SOURCE

NODES = 50_000
TTL_MS = 200
EDGES_PER_MS = 10


def ints(*values):
    return np.array(values, np.int64)


# What a batch costs does not depend on how much is there.


class Reachability:
    """One task, fed with inserts and deletions of what was inserted lately."""

    ROWS_MAX = 9 * 200 * 5  # the more links, the more a path finds: some per record

    def __init__(self):
        self.join = reachability.PathJoin()
        self.rng = np.random.default_rng(1)

    def step(self, first, count):
        ids = np.arange(first, first + count)
        kind = np.where(ids % 5 == 0, SOURCE, LINK).astype(np.int8)
        ends = self.rng.integers(0, NODES, (2, count))
        columns = {"id": ids, "time": ids, "kind": kind, "start": ends[0], "end": ends[1]}
        self.join.process(reachability.INSERTS, Batch(columns))
        # What was inserted just now: the state grows, and a few paths are looked for in all of it.
        targets = Batch({"target": ids[ids % 7 == 0]})
        self.join.process(reachability.DELETIONS, targets)


class NHop:
    """One task, fed with edges, and with routes of one edge."""

    ROWS_MAX = 9 * 200 * 2 * 12  # an edge or a route finds three buckets of four per node

    def __init__(self):
        self.join = nhop.HopJoin(TTL_MS)
        self.rng = np.random.default_rng(1)

    def step(self, first, count):
        ids = np.arange(first, first + count)
        # Few nodes: over all time each has many edges, within the TTL only some.
        ends = self.rng.integers(0, 500, (2, count))
        columns = {"id": ids, "time": ids // EDGES_PER_MS, "start": ends[0], "end": ends[1]}
        edges = Batch(columns)
        self.join.on_watermark(int(edges["time"][0]))
        self.join.process(nhop.EDGES, edges)
        self.join.process(nhop.ROUTES, nhop.as_routes(edges))


class Costs:
    """What batches cost: bytes at their height, looks into a map, and rows that were found there.

    Whoever passes over the state needs some bytes for every row of it, or many looks, or many rows.
    """

    def __init__(self, monkeypatch):
        self.looks = self.rows = 0

        def counted(rows_by_key, keys):
            found = find(rows_by_key, keys)
            self.looks += 1
            self.rows += len(found[1])
            return found

        find = MultiMap.find
        monkeypatch.setattr(MultiMap, "find", counted)

    def of(self, task, rows, count=200, tries=9):
        """The costs of a few batches."""
        self.looks = self.rows = 0
        peaks = []
        for number in range(tries):
            tracemalloc.start()
            task.step(rows + number * count, count)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        return median(peaks), self.looks, self.rows  # now and then a table or a column grows


@pytest.mark.parametrize("task", [Reachability, NHop])
def test_a_batch_costs_the_same_whatever_the_size_of_the_state(task, monkeypatch):
    running, costs = task(), Costs(monkeypatch)
    measured = []
    for before, rows in ((0, 10_000), (12_000, 80_000)):
        for first in range(before, rows, 1_000):
            running.step(first, 1_000)
        measured.append(costs.of(running, rows))
    (small_bytes, small_looks, _), (large_bytes, large_looks, large_rows) = measured
    assert large_bytes < 1.4 * small_bytes
    assert large_looks < 1.4 * small_looks
    assert large_rows < running.ROWS_MAX


def test_this_measure_sees_a_pass_over_the_state(monkeypatch):
    """Or the test above could not fail."""

    class Passing(Reachability):
        def step(self, first, count):
            super().step(first, count)
            assert not (self.join._links.view()["id"] < 0).any()

    running, costs = Passing(), Costs(monkeypatch)
    measured = []
    for before, rows in ((0, 10_000), (12_000, 400_000)):
        running.step(before, rows - before)
        measured.append(costs.of(running, rows)[0])
    assert measured[1] > 1.4 * measured[0]


@pytest.mark.parametrize("task", [Reachability, NHop])
def test_a_snapshot_holds_what_is_new(task):
    running = task()
    running.step(0, 20_000)
    whole = running.join.capture(full=True)
    assert whole.full
    running.step(20_000, 100)
    delta = running.join.capture(full=False)
    assert not delta.full
    rows = {part: batch.length for part, batch in delta.parts.items()}
    assert 0 < sum(rows.values()) <= 300
    none = running.join.capture(full=False)
    assert sum(batch.length for part, batch in none.parts.items() if part != nhop.CLOCK) == 0


# Reachability: what a deletion takes with it.


def link(event, start, end):
    columns = {"id": event, "time": event, "kind": LINK, "start": start, "end": end}
    return Batch({name: ints(value) for name, value in columns.items()})


def path(source, links, end):
    lists = Batch.of(links=[links], nodes=[[0, *links]])
    return Batch({"source": ints(source), "time": ints(0), "end": ints(end), **lists.columns})


def known(join):
    parts = join.capture(full=True).parts
    links = parts["links"]["id"].tolist() if parts["links"].length else []
    paths = parts["paths"].rows()
    return links, [(row[0], row[3]) for row in paths]


def test_a_deletion_takes_the_paths_it_is_part_of_and_no_others():
    join = reachability.PathJoin()
    for found in (path(1, [5, 6], 9), path(1, [7], 9), path(2, [6, 5], 8), path(6, [], 8)):
        join.process(reachability.FOUND, found)
    join.process(reachability.INSERTS, link(6, 3, 4))
    join.process(reachability.DELETIONS, Batch({"target": ints(6)}))
    assert known(join) == ([], [(1, [7])])
    join.process(reachability.FOUND, path(2, [7, 6], 9))
    join.process(reachability.INSERTS, link(6, 3, 4))
    assert known(join) == ([], [(1, [7])])


def test_a_link_finds_no_path_that_was_deleted():
    join = reachability.PathJoin()
    join.process(reachability.FOUND, path(1, [5], 9))
    assert join.process(reachability.INSERTS, link(20, 9, 3))
    join.process(reachability.DELETIONS, Batch({"target": ints(5)}))
    assert not join.process(reachability.INSERTS, link(21, 9, 3))


def test_a_path_of_full_length_is_kept_and_goes_nowhere():
    join = reachability.PathJoin()
    join.process(reachability.INSERTS, link(20, 9, 3))
    assert not join.process(reachability.FOUND, path(1, [5, 6, 7, 8], 9))
    assert not join.process(reachability.INSERTS, link(21, 9, 3))
    assert known(join)[1] == [(1, [5, 6, 7, 8])]


def test_what_was_removed_takes_no_room_for_long():
    join = reachability.PathJoin()
    ids = np.arange(4_000)
    columns = {"id": ids, "time": ids, "start": ids % 9, "end": ids, "kind": np.full(4_000, LINK)}
    join.process(reachability.INSERTS, Batch(columns))
    join.process(reachability.DELETIONS, Batch({"target": ids[:3_000]}))
    assert join._links.view().length == 1_000
    delta = join.capture(full=False)
    assert delta.parts["links"]["id"].tolist() == ids[3_000:].tolist()


def test_a_state_put_together_anew_captures_only_what_is_new(monkeypatch):
    monkeypatch.setattr(living, "REMOVED_MIN", 1)
    join = reachability.PathJoin()
    for event in range(1, 7):
        join.process(reachability.INSERTS, link(event, 3, 4))
    captures = [join.capture(full=True)]
    join.process(reachability.INSERTS, link(7, 3, 4))
    join.process(reachability.DELETIONS, Batch({"target": ints(1, 2, 3, 4)}))
    assert join._links.view().length == 3
    captures.append(join.capture(full=False))
    assert captures[1].parts["links"]["id"].tolist() == [7]
    fresh = reachability.PathJoin()
    fresh.restore(captures)
    assert known(fresh) == known(join) == ([5, 6, 7], [])
    assert fresh.capture(full=False).parts["links"].length == 0


@pytest.mark.parametrize("seed", range(12))
def test_reachability_is_right_however_often_it_is_put_together_anew(monkeypatch, seed):
    monkeypatch.setattr(living, "REMOVED_MIN", 0)
    params = Params(seed=seed, records=80)
    result = run(WORKLOADS["reachability"], params, seed)
    judge = WORKLOADS["reachability"].judge
    assert judge(params, result.output, result.state, Guarantee.EXACTLY_ONCE) == []


SIZES = [
    ("nhop", Params(partitions=2, records=400, duration_ms=12_000, full=True)),
    (
        "nhop",
        Params(partitions=2, records=300, duration_ms=12_000, full=True, hot=20, hot_ms=3_000),
    ),
    ("nhop", Params(records=60, hot=30)),
    ("reachability", Params(partitions=2, records=400, full=True)),
    ("reachability", Params(records=120, hot=30)),
    ("reachability", Params(records=120, hot=30, hot_ms=700)),
]


@pytest.mark.parametrize(("name", "params"), SIZES)
def test_every_size_and_skew_gives_what_is_right(name, params):
    result = run(WORKLOADS[name], params, 1)
    judge = WORKLOADS[name].judge
    assert judge(params, result.output, result.state, Guarantee.EXACTLY_ONCE) == []


# N-hop: what is freed, and what is not.


def edge(event, time, start, end):
    columns = {"id": event, "time": time, "start": start, "end": end}
    return Batch({name: ints(value) for name, value in columns.items()})


def route(event, time, start, end):
    return nhop.as_routes(edge(event, time, start, end))


@pytest.mark.parametrize(("time", "met"), [(99, 0), (100, 1), (250, 1), (400, 1), (401, 0)])
@pytest.mark.parametrize("edge_first", [True, False])
def test_an_edge_meets_the_routes_within_the_ttl_whoever_comes_first(time, met, edge_first):
    join = nhop.HopJoin(150)
    steps = [(nhop.EDGES, edge(1, time, 7, 8)), (nhop.ROUTES, route(2, 250, 6, 7))]
    for port, batch in steps if edge_first else reversed(steps):
        outputs = join.process(port, batch)
    assert sum(pairs.length for _, pairs in outputs) == met


def routes_in(join):
    return join.capture(full=True).parts["routes"].length


def test_routes_are_freed_once_no_edge_can_meet_them():
    join = nhop.HopJoin(100)
    join.process(nhop.ROUTES, route(1, 50, 6, 7))
    join.on_watermark(150)
    assert len(join.process(nhop.EDGES, edge(2, 150, 7, 8))) == 1
    join.on_watermark(199)
    assert routes_in(join) == 1
    join.on_watermark(200)
    assert routes_in(join) == 0
    join.process(nhop.LONGER, route(3, 90, 6, 7))
    assert routes_in(join) == 0  # it is not even kept


def test_a_route_that_was_long_under_way_still_meets_old_edges():
    join = nhop.HopJoin(100)
    join.process(nhop.EDGES, edge(1, 50, 7, 8))
    join.on_watermark(END_OF_TIME)
    ((_, pairs),) = join.process(nhop.LONGER, route(2, 60, 6, 7))
    assert pairs["edge"].tolist() == [1]


def test_what_was_freed_stays_so_after_a_restore():
    join = nhop.HopJoin(100)
    join.process(nhop.ROUTES, route(1, 50, 6, 7))
    captures = [join.capture(full=True)]
    join.process(nhop.ROUTES, route(2, 350, 6, 7))
    join.on_watermark(300)
    captures.append(join.capture(full=False))
    assert captures[1].parts["routes"]["edges"].to_list() == [[2]]
    fresh = nhop.HopJoin(100)
    fresh.restore(captures)
    assert routes_in(fresh) == 1
    assert fresh.capture(full=True).parts["routes"]["edges"].to_list() == [[2]]
    fresh.on_watermark(END_OF_TIME)
    assert routes_in(fresh) == 0


@pytest.mark.parametrize("rows", [Buckets, Stretches])
def test_a_ttl_of_nothing_pairs_what_is_due_at_the_same_time(rows):
    rows = rows("time", "start", 0)
    rows.add(edge(1, 5, 7, 8))
    near = list(rows.near(ints(7), ints(5)))
    assert [found.tolist() for _, _, found in near] == [[0]]
    assert ttl_ms(replace(Params(), duration_ms=3)) == 0


def test_captures_of_edges_are_views():
    join = nhop.HopJoin(100)
    for event in range(200):
        join.process(nhop.EDGES, edge(event, event, 7, 8))
    captured = join.capture(full=True).parts["edges"]["id"]
    assert captured.base is not None
    assert captured.tolist() == list(range(200))
