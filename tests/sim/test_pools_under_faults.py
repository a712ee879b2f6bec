"""Operators in pools of their own keep every promise, whichever pool is struck."""

import pytest
from sim_runs import can_run, kept

from snapline.protocols import PROTOCOLS
from snapline.sim.case import Case, flow_of
from snapline.workload import WORKLOADS


def struck(protocol, workload, seed):
    """A case with two operators in pools of their own, behind the three usual slots; all are struck."""
    case = Case(protocol, workload, seed, records=20, slots=3)
    nodes = flow_of(case).graph.nodes.values()
    names = [node.name for node in nodes if node.ingress is None and not node.is_sink]
    first, last = names[0], names[-1]
    pools = {first: 2, last: 1}  # a single one, if there is a single operator
    faults = (
        f"kill slot=3 at=800ms; kill pool={last} at=1200ms; kill slot=0 on=recovery; "
        f"kill pool={first} at=1600ms"
    )
    return Case(
        protocol, workload, seed, records=20, slots=3, faults=faults, pools=tuple(pools.items())
    )


SLOW = ("fab", "sjoin", "gjoin")  # to run, so two protocols have to do
PLACES = [
    (protocol, workload)
    for protocol in PROTOCOLS
    for workload in WORKLOADS
    if protocol != "none" and can_run(protocol, workload)
    if workload not in SLOW or protocol in ("hmnr", "partial")
]


@pytest.mark.parametrize(("protocol", "workload"), PLACES)
def test_every_protocol_keeps_its_promise_with_pools(protocol, workload):
    outcome = kept(struck(protocol, workload, seed=1))
    assert outcome.problems == ()
    assert outcome.stats["crashes"] > 2


@pytest.mark.parametrize("workload", ["counting", "q3", "q12"])
def test_without_checkpoints_the_other_pools_go_on(workload):
    for seed in (1, 2, 3):
        outcome = kept(struck("none", workload, seed))
        assert outcome.stopped is None
        assert outcome.stats["rejoined"] > 0
