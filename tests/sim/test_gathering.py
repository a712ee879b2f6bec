"""Slots that give operators several waiting messages at once, as real ones do, under drawn faults.

The simulator takes one message at a time; here it is told otherwise, and must find nothing wrong.
"""

import pytest

from snapline.engine.task import Task
from snapline.protocols import PROTOCOLS
from snapline.sim.process import SlotProcess
from snapline.sim.run import Case, simulate

SEEDS = range(1, 4)
HEED = ("bcs", "hmnr")


@pytest.fixture
def gathered(monkeypatch):
    """How many messages were taken with others."""
    monkeypatch.setattr(SlotProcess, "gathers", True)
    counts = [0]
    take = Task.take

    def counting(task, messages):
        counts[0] += len(messages) if len(messages) > 1 else 0
        take(task, messages)

    monkeypatch.setattr(Task, "take", counting)
    return counts


@pytest.mark.parametrize("workload", ["q8", "reachability"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_messages_taken_together_break_no_invariant_and_no_promise(protocol, workload, gathered):
    level = PROTOCOLS[protocol].guarantees[0].value
    outcomes = [
        simulate(Case(protocol, workload, seed, records=150, guarantee=level)) for seed in SEEDS
    ]
    assert [outcome.violation for outcome in outcomes] == [None] * len(outcomes)
    if any(outcome.refused is None for outcome in outcomes):
        assert bool(gathered[0]) == (protocol not in HEED)
