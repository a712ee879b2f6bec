"""Barriers keep their records together under every protocol, whatever fails; and where they are refused."""

from collections import Counter
from dataclasses import replace

import pytest
from sim_runs import kept

from snapline.core.guarantee import Guarantee
from snapline.dataflow.graph import Dataflow
from snapline.protocols import PROTOCOLS
from snapline.protocols.none import NONE
from snapline.sim.case import Case
from snapline.sim.run import simulate
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Problem, Workload
from snapline.workload.common.own import generated


def build(params, *, by_order=True):
    """Each record takes two ways, and the barriers bring them together again."""
    flow = Dataflow("pairs")
    rate = params.records * params.partitions * 1_000 // params.duration_ms
    source = flow.source(generated(lambda n: {"page": n % 5}, rate=rate), name="records")
    left, right = (source.map(lambda b: b, name=name) for name in ("left", "right"))
    left.barrier(right, by="id", name="by-id").sink("ids")
    if by_order:
        left.barrier(right, name="in-slots").sink("slots")
        keyed = left.key_by("page").barrier(right.key_by("page"), name="by-page")
        keyed.sink("pages")
    return flow.bind(params.partitions, params.duration_ms)


def judge(params, outputs, states, level):
    """Every record of each way comes out once; where its order is certain, with itself."""
    records = sum(batch.length for batch in outputs.values())
    problems = [] if records else [Problem("missing", "everything", "nothing came out")]
    for sink, batch in outputs.items():
        for column in ("id", *(["id_2"] if sink != "ids" else [])):
            times = Counter(batch[column].tolist()) if batch.length else Counter()
            if set(times.values()) != {1} or len(times) != len(
                Counter(outputs["ids"]["id"].tolist())
            ):
                problems.append(
                    Problem("wrong", f"{sink} {column}", f"{len(times)} ids, not once each")
                )
        if sink == "slots" and (batch["id"] != batch["id_2"]).any():
            problems.append(Problem("wrong", sink, "a record is paired with another one"))
        if sink == "pages" and (batch["page"] < 0).any():
            problems.append(Problem("invented", sink, "there is no such page"))
    waiting = {
        n: p for n, p in states.items() if any(b.length for k, b in p.items() if k != "arrived")
    }
    if waiting:
        problems.append(Problem("missing", str([*waiting]), "records wait for ever"))
    return problems


@pytest.fixture
def pairs(monkeypatch):
    workload = Workload("pairs", "pairs", False, build, judge)
    monkeypatch.setitem(WORKLOADS.own, "pairs", workload)
    return "pairs"


EXACT = [name for name, each in PROTOCOLS.items() if Guarantee.EXACTLY_ONCE in each.guarantees]


@pytest.mark.parametrize("protocol", EXACT)
def test_records_stay_together_under_every_protocol(pairs, protocol):
    crashes = 0
    for seed in range(1, 5):
        outcome = kept(Case(protocol, pairs, seed, records=30))
        crashes += outcome.stats["crashes"]
    assert crashes > 0


def test_a_barrier_by_order_is_refused_where_records_may_be_lost(pairs):
    refused = simulate(Case("none", pairs, 1)).refused
    assert (
        "the barrier 'in-slots' pairs records by their order, which cannot be under none: it may lose"
        in refused
    )


@pytest.mark.parametrize("level", [Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE])
def test_a_barrier_by_order_is_refused_under_a_lower_promise(pairs, level):
    able = [name for name, each in PROTOCOLS.items() if level in each.guarantees]
    assert able
    for protocol in able:
        refused = simulate(Case(protocol, pairs, 1, guarantee=level.value)).refused
        assert "pairs records by their order" in refused


def test_a_barrier_by_a_column_is_never_refused(monkeypatch):
    workload = replace(
        WORKLOADS["counting"],
        build=lambda params: build(params, by_order=False),
        judge=lambda *_: [],
    )
    monkeypatch.setitem(WORKLOADS.own, "pairs", workload)
    outcome = kept(Case("none", "pairs", 3, faults="kill slot=1 at=900ms"))
    assert (outcome.refused, outcome.stats["crashes"]) == (None, 1)


SAVED = {"records": "1s", "left": "1s", "right": "1s"}
KEPT = {"left": "keep", "right": "keep", "in-slots": "keep", "by-page": "keep"}


@pytest.mark.parametrize(
    ("save", "inputs", "said"),
    [
        ({}, {}, "what goes from 'left' to 'in-slots' is not kept"),
        ({}, KEPT | {"left": "drop", "right": "drop"}, "the operator 'left' is not saved"),
        (SAVED, KEPT | {"right": "wait:9"}, "what goes from 'records' to 'right' is not kept"),
        (SAVED, KEPT, "the source 'records' leaves out what was due while its slot was away"),
        (
            {**SAVED, "in-slots": "no"},
            KEPT | {"in-slots": "drop"},
            "operator 'in-slots' is not saved",
        ),
    ],
)
def test_under_policies_the_message_names_where_records_may_be_lost(pairs, save, inputs, said):
    protocol = replace(NONE, heeds_policies=True)
    case = Case("none", pairs, 1, save=save, inputs=inputs)
    assert said in simulate(case, protocol=protocol).refused
