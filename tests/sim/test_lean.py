"""Chains of operators as single tasks and messages without idle columns, as in real runs, under faults.

The simulator gives every operator a task of its own; here it is told otherwise, and must find nothing
wrong.
"""

import pytest

from snapline.dataflow.deploy import deploy as deploy_flow
from snapline.protocols import PROTOCOLS
from snapline.sim import run
from snapline.sim.case import Case
from snapline.sim.run import simulate

SEEDS = range(1, 3)


@pytest.fixture
def tasks(monkeypatch):
    """The tasks of the last deployment."""
    found = []

    def deploy(flow, slots, lean, pools):  # what the case says of it does not count here
        deployment = deploy_flow(flow, slots, lean=True, pools=pools)
        found[:] = deployment.topology.tasks
        return deployment

    monkeypatch.setattr(run, "deploy", deploy)
    return found


@pytest.mark.parametrize("workload", ["q1", "q3", "q8", "q12", "abs", "nhop"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_lean_deployments_break_no_invariant_and_no_promise(protocol, workload, tasks):
    level = PROTOCOLS[protocol].guarantees[0].value
    outcomes = [
        simulate(Case(protocol, workload, seed, records=120, guarantee=level)) for seed in SEEDS
    ]
    assert [outcome.violation for outcome in outcomes] == [None] * len(outcomes)
    names = {task.rpartition("/")[0] for task in tasks}
    chained = {
        "q1": {"results"},
        "q3": {"persons", "auctions", "results"},
        "q8": {"persons", "auctions", "results"},
        "q12": {"bids", "results"},
        "abs": {"records", "count-first", "count-second", "results"},
        "nhop": {"edges", "routes", "join", "walks"},
    }
    if PROTOCOLS[protocol].heeds_policies:  # operators that are protected differently are not fused
        assert names >= chained[workload]
    else:
        assert names == chained[workload]
