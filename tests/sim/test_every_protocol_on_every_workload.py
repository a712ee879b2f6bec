"""A small sweep: every protocol on every workload, under drawn faults, must give the right result.

One seed is always the same; the other is fresh in every session, and stands in the name of its test (not in
CI, where a sweep over twenty seeds runs beside the tests).
"""

import pytest
from sim_runs import FRESH, can_run, kept

from snapline.protocols import PROTOCOLS
from snapline.sim.case import Case
from snapline.sim.run import simulate
from snapline.workload import WORKLOADS

CELLS = [(p, w) for p in PROTOCOLS for w in WORKLOADS if can_run(p, w)]
REFUSED = [(p, w) for p in PROTOCOLS for w in WORKLOADS if not can_run(p, w)]


@pytest.mark.parametrize("seed", sorted({1, FRESH}))
@pytest.mark.parametrize(("protocol", "workload"), CELLS)
def test_the_result_is_right_whatever_fails(protocol, workload, seed):
    outcome = kept(Case(protocol, workload, seed, records=24))
    assert outcome.stats["messages"] > 0


@pytest.mark.parametrize(("protocol", "workload"), REFUSED)
def test_a_cycle_is_refused_with_the_names_of_the_protocols_that_can(protocol, workload):
    refused = simulate(Case(protocol, workload, 1)).refused
    able = ", ".join(name for name, other in PROTOCOLS.items() if other.cycles)
    assert refused == f"{protocol} cannot run a dataflow with a cycle: choose one of {able}"


def test_a_graph_is_refused_somewhere():
    """Or the test above would say nothing."""
    assert REFUSED
