"""Slots that give operators several waiting messages at once, as real ones do, under drawn faults.

The simulator takes one message at a time; here it is told otherwise, and must find nothing wrong.
"""

from collections import Counter

import pytest

from snapline.engine.slot.task import Task
from snapline.protocols import PROTOCOLS
from snapline.sim.case import Case
from snapline.sim.run import simulate
from snapline.sim.world.process import SimSlotProcess

SEEDS = range(1, 4)
FORCE = ("bcs", "hmnr")


@pytest.fixture
def counts(monkeypatch):
    """How many messages were delivered with others, and how many were not accepted."""
    monkeypatch.setattr(SimSlotProcess, "gathers", True)
    counts = Counter()
    deliver, accept = Task.deliver, Task.accept

    def delivering(task, *messages):
        counts["together"] += len(messages) if len(messages) > 1 else 0
        deliver(task, *messages)

    def accepting(task, message):
        accepted = accept(task, message)
        counts["alone"] += not accepted
        return accepted

    monkeypatch.setattr(Task, "deliver", delivering)
    monkeypatch.setattr(Task, "accept", accepting)
    return counts


@pytest.mark.parametrize("workload", ["q8", "reachability"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_messages_taken_together_break_no_invariant_and_no_promise(protocol, workload, counts):
    level = PROTOCOLS[protocol].guarantees[0].value
    outcomes = [
        simulate(Case(protocol, workload, seed, records=150, guarantee=level)) for seed in SEEDS
    ]
    assert [outcome.violation for outcome in outcomes] == [None] * len(outcomes)
    if any(outcome.refused is None for outcome in outcomes):
        assert counts["together"]
        assert bool(counts["alone"]) == (protocol in FORCE)
