"""Every workload is right under any interleaving, and its oracle sees when it is not."""

from functools import cache

import numpy as np
import pytest

import plain_graphs
from interleaver import run
from snapline.batch import Batch, concat
from snapline.core.guarantee import Guarantee
from snapline.dataflow.operators.join import LEFT, RIGHT, Join, WindowJoin
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params
from snapline.workload.common.generated import label
from snapline.workload.joins import model as joins
from snapline.workload.joins.pairs import BothStreams
from snapline.workload.lineage.model import POST_BIT, event_label
from snapline.workload.nexmark import queries
from snapline.workload.nhop import query as nhop
from snapline.workload.reachability import oracle as reachability_oracle
from snapline.workload.reachability import query as reachability
from snapline.workload.reachability.living import Tombstones

NOTHING, BOUNDED, MOST, LEAST, EXACTLY = Guarantee
PARAMS = Params(seed=5, records=40)
COMPLETE = ("counting", "q1", "q12", "habits", "abs", "sst", "mst")  # every record leaves a trace

every_workload = pytest.mark.parametrize("workload", WORKLOADS.values(), ids=lambda w: w.name)


@cache
def good(workload):
    return run(workload, PARAMS)


def sink_of(workload):
    (sink,) = set(good(workload).output) - {"late"}
    return sink


def verdicts(workload, batch, state=None):
    """The problems at each level when `batch` is the output."""
    output = {**good(workload).output, sink_of(workload): batch}
    kept = good(workload).state if state is None else state
    return {level: workload.judge(PARAMS, output, kept, level) for level in Guarantee}


def broken_at(problems):
    return [level for level in Guarantee if problems[level]]


def streams_of(by_key):
    shape = joins.shape_of(PARAMS, by_key=by_key)
    asked, rows = joins.asking(PARAMS, shape), joins.stored(PARAMS, shape)
    return BothStreams(shape, asked.everything(), rows.everything())


def row_to_touch(workload, batch):
    """A row that must be there: for reachability one of MUST, for joins one with the newest row."""
    if workload.name in ("sjoin", "gjoin"):
        streams = streams_of(workload.name == "gjoin")
        newest = streams.written(streams.newest()[0], ())
        wanted = (newest["id"][3], newest["id_right"][3])
        (found,) = np.flatnonzero((batch["id"] == wanted[0]) & (batch["id_right"] == wanted[1]))
        return int(found)
    if workload.name != "reachability":
        return 3
    world = plain_graphs.world_of(PARAMS)
    paths = zip(batch["source"].tolist(), batch["links"].to_list(), strict=True)
    return next(n for n, path in enumerate(paths) if world.alive(path))


def test_the_list_names_every_workload():
    names = ["counting", "q1", "q3", "q5", "q6", "q7", "q8", "q12", "habits"]
    names += ["abs", "sst", "mst", "fab", "sjoin", "gjoin", "reachability", "nhop"]
    assert list(WORKLOADS) == names
    assert [w.name for w in WORKLOADS.values() if w.cyclic] == ["reachability", "nhop"]
    for workload in WORKLOADS.values():
        assert len(workload.summary) < 80


@every_workload
@pytest.mark.parametrize("seed", range(20))
def test_every_interleaving_gives_what_is_right(workload, seed):
    params = Params(seed=seed)
    result = run(workload, params, seed)
    assert workload.judge(params, result.output, result.state, EXACTLY) == []


@every_workload
@pytest.mark.parametrize(
    ("params", "slots"),
    [
        (Params(partitions=1, records=40), 1),
        (Params(partitions=4, records=20), 2),
        (Params(partitions=1, records=1, duration_ms=5), 3),
    ],
    ids=str,
)
def test_every_size_of_a_run_gives_what_is_right(workload, params, slots):
    result = run(workload, params, slots=slots)
    assert workload.judge(params, result.output, result.state, EXACTLY) == []


@every_workload
def test_the_output_has_a_time_for_its_latency(workload):
    assert good(workload).output[sink_of(workload)].schema["time"] == "int64"


@every_workload
def test_an_output_of_a_size_that_can_be_read_and_is_worth_judging(workload):
    size = len(run(workload, Params()).output[sink_of(workload)])
    assert 15 <= size <= 300


# One row of the output is touched.


@every_workload
def test_a_row_that_is_missing_breaks_at_least_once(workload):
    batch = good(workload).output[sink_of(workload)]
    lost = row_to_touch(workload, batch)
    problems = verdicts(workload, batch.take(np.arange(len(batch)) != lost))
    assert broken_at(problems) == [NOTHING, BOUNDED, LEAST, EXACTLY]
    assert any(named(workload, batch, lost) in p.record for p in problems[EXACTLY])
    assert all(p.kind == "missing" for p in problems[EXACTLY])


@every_workload
def test_a_row_that_came_twice_breaks_at_most_once(workload):
    batch = good(workload).output[sink_of(workload)]
    twice = row_to_touch(workload, batch)
    problems = verdicts(workload, concat([batch, batch.slice(twice, twice + 1)]))
    assert broken_at(problems) == [NOTHING, BOUNDED, MOST, EXACTLY]
    assert any(named(workload, batch, twice) in p.record for p in problems[EXACTLY])
    assert all(p.kind == "duplicate" for p in problems[EXACTLY])


@every_workload
def test_an_output_that_never_came_misses_everything(workload):
    for output in ({}, {sink_of(workload): Batch({}, 0)}):
        problems = workload.judge(PARAMS, output, {}, EXACTLY)
        if workload.name in ("sst", "mst"):  # one problem for each cause
            assert problems[0].because.endswith(" in all)")
        else:
            assert len(problems) > 10
        assert workload.judge(PARAMS, output, {}, MOST) == []


def named(workload, batch, row):
    """How a problem names a row."""
    facts = dict(zip(batch.columns, batch.slice(row, row + 1).rows()[0], strict=True))
    match workload.name:
        case "counting" | "q12":
            return f":{facts['time'] * PARAMS.records // PARAMS.duration_ms}"
        case "q1" | "habits":
            return label("bid", facts["id"])
        case "abs":
            return label("record", facts["id"])
        case "q3" | "q8":
            return f"auction {facts['auction']} with person {facts['person']}"
        case "q5" | "q7":
            return f"auction {facts['auction']} in window {facts['window']}"
        case "q6":
            return f"sale of auction {facts['auction']}"
        case "fab":
            return f"lot {facts['lot']}"
        case "sjoin" | "gjoin":
            return f"{label('record', facts['id'])} with row {facts['id_right']}"
        case "sst":
            return event_label(min(facts["ids"]))
        case "mst":
            return event_label(min(facts["get_ids"] or facts["post_ids"]))
        case "reachability":
            return " > ".join(label("link", link) for link in facts["links"])
        case "nhop":
            return " > ".join(label("edge", edge) for edge in facts["edges"])


def changed(batch, row, **values):
    """The batch with other values in one row."""
    columns = {}
    for name, value in values.items():
        cells = batch.select(name).to_pydict()[name]
        cells[row] = value
        columns[name] = cells
    return batch.with_columns(**Batch.of(**columns).columns)


WRONG_VALUES = [
    ("q1", {"price": 1}, [NOTHING, BOUNDED, MOST, LEAST, EXACTLY]),
    ("q3", {"city": "Nowhere"}, [NOTHING, BOUNDED, MOST, LEAST, EXACTLY]),
    ("q8", {"reserve": 1}, [NOTHING, BOUNDED, MOST, LEAST, EXACTLY]),
    ("q8", {"window": 7}, [NOTHING, BOUNDED, MOST, LEAST, EXACTLY]),
    ("q5", {"count": 99}, [NOTHING, BOUNDED, MOST, EXACTLY]),
    ("q5", {"count": 0}, [NOTHING, BOUNDED, LEAST, EXACTLY]),
    ("q5", {"time": 7}, [NOTHING, BOUNDED, MOST, EXACTLY]),
    ("q6", {"average": 1.5}, [NOTHING, BOUNDED, EXACTLY]),
    ("q6", {"price": 1}, [NOTHING, BOUNDED, LEAST, EXACTLY]),
    ("q6", {"seller": 1_000}, [NOTHING, BOUNDED, MOST, LEAST, EXACTLY]),
    ("q7", {"price": 1}, [NOTHING, BOUNDED, LEAST, EXACTLY]),
    ("q7", {"price": 10**9}, [NOTHING, BOUNDED, MOST, EXACTLY]),
    ("habits", {"average": 1.5}, [NOTHING, BOUNDED, EXACTLY]),
    ("habits", {"lowest": 1}, [NOTHING, BOUNDED, EXACTLY]),
    ("habits", {"price": 1}, [NOTHING, BOUNDED, MOST, LEAST, EXACTLY]),
    ("fab", {"predicted": 1, "quality": 1 - 5_000, "actual": 5_000}, [NOTHING, BOUNDED, EXACTLY]),
    ("fab", {"quality": 1}, [NOTHING, BOUNDED, MOST, LEAST, EXACTLY]),
    ("fab", {"wafers": 1}, [NOTHING, BOUNDED, LEAST, EXACTLY]),
    ("fab", {"wafers": 5}, [NOTHING, BOUNDED, MOST, EXACTLY]),
    ("sjoin", {"key": 77}, [NOTHING, BOUNDED, MOST, LEAST, EXACTLY]),
    ("gjoin", {"text_right": "x"}, [NOTHING, BOUNDED, MOST, LEAST, EXACTLY]),
    ("counting", {"count": 99}, [NOTHING, BOUNDED, MOST, EXACTLY]),
    ("q12", {"count": 99}, [NOTHING, BOUNDED, MOST, EXACTLY]),
    ("abs", {"time": 7}, [NOTHING, BOUNDED, MOST, LEAST, EXACTLY]),
    ("abs", {"first_count": 99}, [NOTHING, BOUNDED, MOST, EXACTLY]),
    ("abs", {"third_count": 99}, [NOTHING, BOUNDED, MOST, EXACTLY]),
    ("sst", {"count": 99}, [NOTHING, BOUNDED, MOST, LEAST, EXACTLY]),
    ("sst", {"window": 2_000}, [NOTHING, BOUNDED, MOST, LEAST, EXACTLY]),
    ("sst", {"resource": 77}, [NOTHING, BOUNDED, MOST, LEAST, EXACTLY]),
    ("mst", {"gets": 99}, [NOTHING, BOUNDED, MOST, LEAST, EXACTLY]),
    ("mst", {"posts": 99}, [NOTHING, BOUNDED, MOST, LEAST, EXACTLY]),
    ("reachability", {"nodes": [1, 2]}, [NOTHING, BOUNDED, MOST, LEAST, EXACTLY]),
    ("nhop", {"time": 7}, [NOTHING, BOUNDED, MOST, LEAST, EXACTLY]),
]


@pytest.mark.parametrize(("name", "values", "levels"), WRONG_VALUES)
def test_a_row_with_a_wrong_value_is_wrong(name, values, levels):
    workload = WORKLOADS[name]
    batch = good(workload).output[sink_of(workload)]
    row = row_to_touch(workload, batch)
    problems = verdicts(workload, changed(batch, row, **values))
    assert broken_at(problems) == levels
    assert {p.kind for p in problems[MOST]} == ({"wrong"} if MOST in levels else set())


INVENTIONS = [
    ("q1", {"id": 10**6}, "bid 0:1000000"),
    ("q3", {"person": 10**6}, "with person 1000000"),
    ("q8", {"auction": 10**6}, "auction 1000000"),
    ("habits", {"id": 10**6}, "bid 0:1000000"),
    ("fab", {"lot": 77}, "lot 77"),
    ("sjoin", {"id_right": 10**6}, "row 1000000"),
    ("gjoin", {"id": 10**6}, "record 0:1000000"),
    ("counting", {"key": 77}, "key 77"),
    ("q12", {"bidder": 77}, "bidder 77"),
    ("abs", {"id": 10**6, "first": 77, "second": 77, "third": 77}, "record 0:1000000"),
    ("sst", {"ids": [10**6]}, "GET 0:1000000"),
    ("mst", {"post_ids": [POST_BIT + 10**6]}, "POST 0:1000000"),
    ("reachability", {"links": [5, 6]}, "link 0:5 > link 0:6"),
    ("nhop", {"edges": [5, 6, 7]}, "edge 0:5 > edge 0:6 > edge 0:7"),
]


@pytest.mark.parametrize(("name", "values", "record"), INVENTIONS)
def test_a_row_that_nothing_gives_is_invented(name, values, record):
    workload = WORKLOADS[name]
    batch = good(workload).output[sink_of(workload)]
    invented = changed(batch, 3, **values).slice(3, 4)
    problems = verdicts(workload, concat([batch, invented]))
    assert broken_at(problems) == [NOTHING, BOUNDED, MOST, EXACTLY]
    assert [p.kind for p in problems[EXACTLY]] == ["invented"]
    assert record in problems[EXACTLY][0].record


# Something goes wrong on the way.


@every_workload
@pytest.mark.parametrize(("times", "level"), [(0, LEAST), (2, MOST)], ids=["lost", "twice"])
def test_a_message_that_is_not_delivered_once_is_seen(workload, times, level):
    tries = 6
    seen = 0
    for part in range(1, tries + 1):
        chosen = good(workload).delivered * part // (tries + 1)
        result = run(workload, PARAMS, faults={chosen: times})
        assert not workload.judge(PARAMS, result.output, {}, MOST if level is LEAST else LEAST)
        seen += bool(workload.judge(PARAMS, result.output, result.state, EXACTLY))
    # Where a record needs a partner, or is deleted, or deletes again, it may leave no trace.
    assert seen == tries if workload.name in COMPLETE else seen > 0


def problems_of(workload, seeds=3):
    found = []
    for seed in range(seeds):
        result = run(workload, PARAMS, seed)
        found += workload.judge(PARAMS, result.output, result.state, EXACTLY)
    return found


def test_a_join_on_a_cycle_that_forgets_links_is_seen(monkeypatch):
    def forgetful(self, links):
        j, i = self._paths.find(links["start"])
        return reachability._pairs(self._paths.view(), i, links, j)

    monkeypatch.setattr(reachability.PathJoin, "_add_links", forgetful)
    kinds = {p.kind for p in problems_of(WORKLOADS["reachability"])}
    assert kinds == {"missing"}


def test_a_join_that_forgets_its_tombstones_is_seen_in_the_state(monkeypatch):
    monkeypatch.setattr(Tombstones, "add", lambda self, events: events)
    problems = problems_of(WORKLOADS["reachability"])
    assert {p.kind for p in problems} == {"invented", "missing"}
    assert all(p.record.startswith("state: ") for p in problems)
    assert any("state: link" in p.record for p in problems)


def test_a_path_through_a_node_twice_is_seen(monkeypatch):
    def careless(column, hit):
        return np.zeros(len(column), np.bool_)

    monkeypatch.setattr(reachability, "any_item", careless)
    assert "invented" in {p.kind for p in problems_of(WORKLOADS["reachability"], seeds=1)}


def test_the_one_sided_join_of_the_thesis_loses_walks(monkeypatch):
    def one_sided(self, port, batch):
        outputs = process(self, port, batch)
        return () if port == nhop.EDGES else outputs

    process = nhop.HopJoin.process
    monkeypatch.setattr(nhop.HopJoin, "process", one_sided)
    assert {p.kind for p in problems_of(WORKLOADS["nhop"], seeds=1)} == {"missing"}


def test_a_walk_beyond_the_ttl_is_invented(monkeypatch):
    monkeypatch.setattr(nhop, "ttl_ms", lambda params: params.duration_ms)
    assert {p.kind for p in problems_of(WORKLOADS["nhop"], seeds=1)} == {"invented"}


@pytest.mark.parametrize(("name", "operator"), [("q3", Join), ("q8", WindowJoin)])
@pytest.mark.parametrize("side", [LEFT, RIGHT])
def test_a_join_whose_one_side_does_not_look_at_the_other_is_seen(
    monkeypatch, name, operator, side
):
    def blind(self, port, batch):
        outputs = process(self, port, batch)
        return () if port == side else outputs

    process = operator.process
    monkeypatch.setattr(operator, "process", blind)
    assert {p.kind for p in problems_of(WORKLOADS[name], seeds=1)} == {"missing"}


def test_a_filter_that_keeps_the_wrong_records_is_seen(monkeypatch):
    monkeypatch.setattr(queries, "is_local", lambda persons: persons["person"] < 20)
    kinds = {p.kind for p in problems_of(WORKLOADS["q3"], seeds=1)}
    assert kinds == {"missing", "invented"}


def test_a_window_of_another_length_is_seen(monkeypatch):
    monkeypatch.setattr(queries, "window_ms", lambda params: params.duration_ms)
    for name in ("q8", "q12"):
        assert problems_of(WORKLOADS[name], seeds=1)


# What the oracles of reachability and of the windows ask, beyond the rows.


def test_the_final_state_is_judged_only_where_it_was_promised():
    workload = WORKLOADS["reachability"]
    result = good(workload)
    for part in ("links", "paths", "tombstones"):
        batch = result.state["join"][part]
        state = {"join": {**result.state["join"], part: batch.slice(1, len(batch))}}
        problems = verdicts(workload, result.output["paths"], state)
        assert broken_at(problems) == [NOTHING, BOUNDED, EXACTLY]
        assert [p.kind for p in problems[EXACTLY]] == ["missing"]
        assert problems[EXACTLY][0].record.startswith("state: ")


def test_deletions_leave_both_paths_that_must_and_paths_that_may_be_found():
    world = reachability_oracle.world_of(PARAMS)
    _, *paths = reachability_oracle.simple_paths(world)
    alive = sum(np.count_nonzero(of_length["alive"]) for of_length in paths)
    assert 10 <= alive < sum(len(of_length) for of_length in paths) <= 300
    assert [len(of_length) > 0 for of_length in paths] == [True] * 4


def test_some_interleavings_find_paths_that_others_do_not():
    workload = WORKLOADS["reachability"]
    sizes = {len(run(workload, PARAMS, seed).output["paths"]) for seed in range(6)}
    assert len(sizes) > 1
