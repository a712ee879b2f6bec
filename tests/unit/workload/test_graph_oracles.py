"""The oracles of paths and walks: they say what their plain forms say, and name what was touched."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import plain_graphs
from interleaver import run
from snapline.batch import Batch, Varlen, concat
from snapline.core.guarantee import Guarantee
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params
from snapline.workload.common.generated import label
from snapline.workload.nhop import model as nhop_model
from snapline.workload.nhop import oracle as nhop
from snapline.workload.oracles.verdict import LIMIT
from snapline.workload.reachability import oracle as reachability

PARAMS = Params(seed=5, records=40)
LARGER = Params(seed=2, partitions=2, records=300, duration_ms=5_000)
HOT = replace(LARGER, hot=30, hot_ms=2_000)
PLAIN = {"reachability": plain_graphs.judge_reachability, "nhop": plain_graphs.judge_nhop}
LIST = {"reachability": "links", "nhop": "edges"}
SINK = {"reachability": "paths", "nhop": "walks"}

graphs = pytest.mark.parametrize("name", list(PLAIN))


@cache
def good(name, params=PARAMS):
    return run(WORKLOADS[name], params)


@pytest.mark.parametrize("params", [PARAMS, LARGER, HOT], ids=["small", "larger", "hot"])
def test_the_paths_are_those_of_the_plain_form(params):
    found = [
        ((source, tuple(links)), (tuple(nodes), time), alive)
        for of_length in reachability.simple_paths(reachability.world_of(params))
        for source, time, alive, links, nodes in of_length.rows()
    ]
    world = plain_graphs.world_of(params)
    plain = plain_graphs.simple_paths(world)
    assert len(found) == len(plain)
    assert {path: facts for path, facts, _ in found} == plain
    assert all(alive == world.alive(path) for path, _, alive in found)


@pytest.mark.parametrize("params", [PARAMS, LARGER, HOT], ids=["small", "larger", "hot"])
def test_the_walks_are_those_of_the_plain_form(params):
    walks = nhop.walks_of(params)
    columns = walks.select("edges", "start", "end", "first", "time").rows()
    found = {tuple(edges): tuple(facts) for edges, *facts in columns}
    assert len(found) == len(walks)
    assert found == plain_graphs.walks_of(params)


def test_walks_over_many_times_to_live_are_all_found(monkeypatch):
    for module in (nhop, nhop_model):
        monkeypatch.setattr(module, "ttl_ms", lambda params: params.duration_ms // 97)
    few = replace(LARGER, records=600)
    monkeypatch.setattr(nhop_model, "node_count", lambda params: 12)
    walks = [tuple(edges) for edges in nhop.walks_of(few)["edges"].to_list()]
    assert len(walks) > 500
    assert sorted(walks) == sorted(plain_graphs.walks_of(few))


def touched(batch, row, column, value):
    """The batch with another value in one row."""
    cells = batch.select(column).to_pydict()[column]
    cells[row] = value
    changed = Varlen.of("list", cells) if isinstance(value, list) else np.array(cells)
    return batch.with_columns(**{column: changed})


def repeated(batch, row):
    return concat([batch, batch.slice(row, row + 1)])


def added(batch, row, column, value):
    return concat([batch, touched(batch, row, column, value).slice(row, row + 1)])


def mutations(name, batch):
    """Batches with something wrong, row by row."""
    column = LIST[name]
    for row in range(0, len(batch), max(len(batch) // 12, 1)):
        items = batch[column].to_list()[row]
        yield "dropped", batch.take(np.arange(len(batch)) != row)
        yield "repeated", repeated(batch, row)
        yield "thrice", repeated(repeated(batch, row), row)
        yield "invented", added(batch, row, column, [5, *items[1:]])
        yield "longer", added(batch, row, column, [*items, -1])
        yield "longest", added(batch, row, column, [*items, 1, 2, 3, 4, 5])
        yield "shorter", added(batch, row, column, items[:-1])
        yield "time changed", touched(batch, row, "time", 7)
        yield "added with another time", added(batch, row, "time", 7)
        if name == "reachability":
            yield "nodes changed", touched(batch, row, "nodes", [1, 2])
            yield "source changed", touched(batch, row, "source", 3)


@graphs
@pytest.mark.parametrize("level", Guarantee)
def test_whatever_is_wrong_is_said_as_the_plain_form_says_it(name, level):
    result = good(name)
    seen = set()
    for what, batch in mutations(name, result.output[SINK[name]]):
        output = {SINK[name]: batch}
        fast = WORKLOADS[name].judge(PARAMS, output, result.state, level)
        plain = PLAIN[name](PARAMS, output, result.state, level)
        assert len(plain) < LIMIT
        assert sorted(map(repr, fast)) == sorted(map(repr, plain)), what
        if fast:
            seen.add(what)
    assert seen if level is not Guarantee.EXACTLY_ONCE else len(seen) >= 8


@graphs
def test_as_it_came_out_nothing_is_wrong_at_any_level(name):
    result = good(name)
    for level in Guarantee:
        assert WORKLOADS[name].judge(PARAMS, result.output, result.state, level) == []


@graphs
def test_the_very_list_is_named(name):
    batch = good(name).output[SINK[name]]
    alive = {tuple(links) for paths in must(name) for links in paths[LIST[name]].to_list()}
    lists = [tuple(items) for items in batch[LIST[name]].to_list()]
    row = next(n for n, items in enumerate(lists) if items in alive)
    step = {"reachability": "link", "nhop": "edge"}[name]
    named = " > ".join(label(step, item) for item in lists[row])
    dropped = batch.take(np.arange(len(batch)) != row)
    (problem,) = WORKLOADS[name].judge(PARAMS, {SINK[name]: dropped}, {}, Guarantee.EXACTLY_ONCE)
    assert problem.kind == "missing"
    assert problem.record.endswith(named)
    (problem,) = WORKLOADS[name].judge(
        PARAMS, {SINK[name]: repeated(batch, row)}, {}, Guarantee.EXACTLY_ONCE
    )
    assert (problem.kind, problem.because) == ("duplicate", "it came out 2 times")
    assert problem.record.endswith(named)


def must(name):
    if name == "nhop":
        return [nhop.walks_of(PARAMS)]
    _, *paths = reachability.simple_paths(reachability.world_of(PARAMS))
    return [of_length.take(of_length["alive"]) for of_length in paths]


# The final state of reachability.


def state_with(part, batch):
    return {"join": {**good("reachability").state["join"], part: batch}}


def state_problems(part, batch):
    result = good("reachability")
    state, level = state_with(part, batch), Guarantee.EXACTLY_ONCE
    fast = WORKLOADS["reachability"].judge(PARAMS, result.output, state, level)
    plain = plain_graphs.judge_reachability(PARAMS, result.output, state, level)
    assert sorted(map(repr, fast)) == sorted(map(repr, plain))
    return fast


@pytest.mark.parametrize("part", ["links", "paths"])
def test_a_state_that_lacks_or_repeats_a_row_is_named(part):
    kept = good("reachability").state["join"][part]
    (problem,) = state_problems(part, kept.slice(1, len(kept)))
    assert problem.kind == "missing"
    assert problem.record.startswith("state: ")
    assert "duplicate" in {p.kind for p in state_problems(part, repeated(kept, 2))}


def test_a_path_that_should_have_left_the_state_is_invented():
    _, paths, *_ = reachability.simple_paths(reachability.world_of(PARAMS))
    dead = paths.take(~paths["alive"]).slice(0, 1)
    kept = good("reachability").state["join"]["paths"]
    dead = dead.with_columns(end=dead["time"]).select(*kept.columns)
    (problem,) = state_problems("paths", concat([kept, dead]))
    assert problem.kind == "invented"
    (source,), ((link,),) = dead["source"].tolist(), dead["links"].to_list()
    assert problem.record == f"state: path {label('source', source)} > {label('link', link)}"


def test_a_link_that_should_have_left_the_state_is_invented():
    links = reachability.world_of(PARAMS).links
    kept = good("reachability").state["join"]["links"]
    dead = links.take(~links["alive"]).slice(0, 1).select(*kept.columns)
    (problem,) = state_problems("links", concat([kept, dead]))
    assert problem.kind == "invented"
    assert problem.record == label("state: link", int(dead["id"][0]))


def test_a_tombstone_that_one_task_lacks_is_missing():
    kept = good("reachability").state["join"]["tombstones"]
    (problem,) = state_problems("tombstones", kept.slice(1, len(kept)))
    assert problem.kind == "missing"
    assert problem.record == label("state: tombstone of event", int(kept["id"][0]))
    assert problem.because == "2 of 3 tasks know of the deletion"


def test_a_tombstone_of_what_nobody_deleted_is_invented():
    kept = good("reachability").state["join"]["tombstones"]
    (problem,) = state_problems("tombstones", concat([kept, Batch.of(id=[10**6])]))
    assert (problem.kind, problem.because) == ("invented", "nobody deleted it")


def test_a_state_without_tombstones_lacks_them_all():
    assert len(state_problems("tombstones", Batch({}, 0))) == LIMIT
