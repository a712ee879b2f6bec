"""Pools: operators in slots of their own, how tasks are numbered, and how edges lead between them."""

from dataclasses import dataclass, field

import pytest

from snapline.batch import Batch
from snapline.dataflow.deploy import deploy
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.partition import InTurn, OneToOne, split
from snapline.errors import GraphError


@dataclass
class Records:
    """An ingress of which only the shape matters here."""

    schema: dict[str, str] = field(default_factory=lambda: {"id": "int64", "key": "int64"})
    partitions: int = 3


def flow_of(*, pool="model", keyed=False):
    flow = Dataflow("f")
    source = flow.source(Records(), name="in")
    fed = source.key_by("key") if keyed else source
    model = fed.map(lambda batch: batch, name="model")
    (model.pool(pool) if pool else model).sink("out")
    return flow


def test_an_operator_in_a_pool_has_slots_of_its_own_behind_those_of_all_others():
    found = deploy(flow_of(), 2, pools={"model": 3})
    assert found.slots == 5
    assert found.pools == {"": (0, 1), "model": (2, 3, 4)}
    assert list(found.plans) == [
        "in/0",
        "in/1",
        *(f"{n}/{s}" for n in ("model", "out") for s in (2, 3, 4)),
    ]
    assert [plan.slot for plan in found.plans.values()] == [0, 1, 2, 3, 4, 2, 3, 4]
    assert found.sinks == {"out": ("out/2", "out/3", "out/4")}


def test_a_pool_has_one_slot_unless_its_size_is_given():
    assert deploy(flow_of(), 2).pools == {"": (0, 1), "model": (2,)}


def test_a_pool_may_be_named_after_an_operator_that_is_in_none():
    flow = flow_of(pool="").with_pools(["model"])
    found = deploy(flow, 2, pools={"model": 2})
    assert found.pools == {"": (0, 1), "model": (2, 3)}
    assert found.sinks == {"out": ("out/2", "out/3")}, "a sink is where its input is"
    again = flow.with_pools(["model"])  # as a run does that is resumed
    assert deploy(again, 2, pools={"model": 2}).fingerprint == found.fingerprint
    assert deploy(flow_of().with_pools(["model"]), 2).pools == {"": (0, 1), "model": (2,)}


def test_a_pool_of_nothing_is_refused():
    with pytest.raises(GraphError, match=r"no pool and no operator 'modle'.*model"):
        flow_of(pool="").with_pools(["modle"])
    with pytest.raises(GraphError, match=r"'out' is a sink.*place 'model'"):
        flow_of(pool="").with_pools(["out"])


def test_partitions_are_shared_out_among_the_slots_of_the_pool():
    flow = Dataflow("f")
    flow.source(Records(), name="in").pool("input").key_by("key").count().sink("out")
    plans = deploy(flow, 1, pools={"input": 2}).plans
    assert (plans["in/1"].partitions, plans["in/2"].partitions) == ((0, 2), (1,))


def test_operators_of_two_pools_are_never_one_task():
    assert list(deploy(flow_of(pool=""), 1, lean=True).plans) == ["out/0"]
    assert list(deploy(flow_of(), 1, lean=True).plans) == ["in/0", "out/1"]


def test_between_pools_of_equal_size_a_direct_edge_leads_from_each_to_one():
    (route,) = deploy(flow_of(), 2, pools={"model": 2}).plans["in/1"].routes
    assert (route.routing, [c.target for c in route.channels]) == (OneToOne(), ["model/3"])


def test_between_pools_of_unequal_size_batches_go_to_all_in_turn():
    (route,) = deploy(flow_of(), 1, pools={"model": 2}).plans["in/0"].routes
    assert route.routing == InTurn()
    sent = dict.fromkeys((channel.id for channel in route.channels), 0)
    for _ in range(6):
        [(channel, _)] = split(route, Batch.of(id=[1], key=[2]), sent)
        sent[channel.id] += 1
    assert list(sent.values()) == [3, 3]


def test_a_keyed_edge_reaches_every_slot_of_the_pool():
    routes = deploy(flow_of(keyed=True), 2, pools={"model": 3}).plans["in/0"].routes
    assert [c.target for c in routes[0].channels] == ["model/2", "model/3", "model/4"]


def test_where_operators_are_is_part_of_the_fingerprint():
    found = {
        deploy(flow_of(pool=""), 2).fingerprint,
        deploy(flow_of(), 2).fingerprint,
        deploy(flow_of(pool="other"), 2).fingerprint,
        deploy(flow_of(), 2, pools={"model": 2}).fingerprint,
        deploy(flow_of(), 3).fingerprint,
    }
    assert len(found) == 5


@pytest.mark.parametrize(
    ("pools", "said"),
    [({"modle": 1}, "has no pool 'modle': it has model"), ({"model": 0}, "at least one slot")],
)
def test_sizes_that_fit_no_pool_are_refused(pools, said):
    with pytest.raises(GraphError, match=said):
        deploy(flow_of(), 2, pools=pools)


def test_a_dataflow_without_pools_says_so():
    with pytest.raises(GraphError, match="none of its operators is in one"):
        deploy(flow_of(pool=""), 2, pools={"model": 1})


def test_one_operator_at_least_is_in_the_default_pool():
    flow = Dataflow("f")
    flow.source(Records(), name="in").pool("a").sink("out")
    with pytest.raises(GraphError, match="leave one of them in none"):
        deploy(flow, 1)


def test_a_union_is_in_no_pool():
    flow = Dataflow("f")
    both = flow.source(Records(), name="a").union(flow.source(Records(), name="b"))
    with pytest.raises(GraphError, match="place its parts"):
        both.pool("model")
