"""Operators in pools of their own keep every promise, whichever pool is struck."""

from dataclasses import replace

import pytest
from sim_runs import can_run, kept

from snapline.chaos import targets
from snapline.dataflow.deploy import deploy
from snapline.protocols import PROTOCOLS
from snapline.sim import run as sim_run
from snapline.sim.case import Case
from snapline.workload import WORKLOADS

SIZES = {"first": 2, "second": 1}
FAULTS = (
    "kill slot=3 at=800ms; kill slot=5 at=1200ms; kill slot=0 on=recovery; kill slot=4 at=1600ms"
)


@pytest.fixture
def pools(monkeypatch):
    """Every second operator of a workload is in one of two pools, behind the three usual slots."""

    def placed(flow, slots, *, lean):
        for number, (name, node) in enumerate(tuple(flow.graph.nodes.items())[1:]):
            pool = ("first", "", "second", "")[number % 4]
            flow.graph.nodes[name] = replace(node, pool=pool)
        named = {node.pool for node in flow.graph.nodes.values()}
        return deploy(flow, slots, lean=lean, pools={n: s for n, s in SIZES.items() if n in named})

    monkeypatch.setattr(sim_run, "deploy", placed)
    monkeypatch.setattr(sim_run, "check", lambda faults, slots: targets.check(faults, 6))


PLACES = [
    (protocol, workload)
    for protocol in PROTOCOLS
    for workload in WORKLOADS
    if protocol != "none" and can_run(protocol, workload)
]


@pytest.mark.parametrize(("protocol", "workload"), PLACES)
def test_every_protocol_keeps_its_promise_with_pools(pools, protocol, workload):
    for seed in (1, 2):
        outcome = kept(Case(protocol, workload, seed, records=20, slots=3, faults=FAULTS))
        assert outcome.problems == ()
        assert outcome.stats["crashes"] > 0


@pytest.mark.parametrize("workload", ["counting", "q3", "q12"])
def test_without_checkpoints_the_other_pools_go_on(pools, workload):
    for seed in (1, 2, 3):
        outcome = kept(Case("none", workload, seed, records=20, slots=3, faults=FAULTS))
        assert outcome.stopped is None
        assert outcome.stats["rejoined"] > 0
