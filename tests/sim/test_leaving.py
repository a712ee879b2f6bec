"""Slots leave at any moment and amid failures; their successors go on from a line, and promises are kept.

When a slot leaves, the invariant `line_holds_everything` compares the line with what the tasks have done.
"""

from collections import Counter
from random import Random

import pytest
from sim_runs import FRESH, can_run

from snapline.core.guarantee import Guarantee
from snapline.engine.coordinator import coordinator
from snapline.engine.coordinator.members import Members
from snapline.journal.entry import Happened
from snapline.journal.happenings import LineDecided, MessageReplayed, SlotLeft, SlotLost
from snapline.protocols import PROTOCOLS
from snapline.sim.case import DURATION_MS, Case
from snapline.sim.run import Outcome, simulate

SEEDS = (1, 2, FRESH)
PAIRS = [(p, "reachability" if can_run(p, "reachability") else "q12") for p in PROTOCOLS]


def left(protocol: str, workload: str, seed: int, **given: str) -> tuple[Outcome, str]:
    """A run in which three slots are to leave, and a text that repeats it; slots die while two do."""
    rng = Random(f"{seed}:{protocol}:{workload}")
    leaves = [(rng.randrange(3), rng.randrange(100, DURATION_MS // 2)) for _ in range(2)]
    if seed % 2:
        leaves[1] = (leaves[1][0], leaves[0][1] + rng.randrange(40))  # the same, or beside it
    kills = [f"kill slot={rng.randrange(3)} at={at + rng.randrange(1, 60)}ms" for _, at in leaves]
    driver = f"kill coordinator at={leaves[0][1] + rng.randrange(1, 60)}ms for=100ms"
    faults = ("", "; ".join(kills), driver, None)[seed % 4]  # None: whatever the seed draws
    leaves.append((rng.randrange(3), DURATION_MS * 2 // 3))  # where no kill of these is near
    if PROTOCOLS[protocol].publishes_at_once:  # a slot that leaves loses what it did not save
        given = {"guarantee": "nothing", **given}
    case = Case(protocol, workload, seed, faults=faults, **given)
    outcome = simulate(case, leaves=leaves)
    broken = outcome.violation
    story = "" if broken is None else f"{broken.name}: {broken.story}\n"
    return outcome, f"{story}repeat with: simulate({case!r}, leaves={leaves})"


@pytest.mark.parametrize(("protocol", "workload"), PAIRS)
def test_slots_leave_amid_failures_and_the_promise_is_kept(protocol, workload):
    total: Counter[str] = Counter()
    for seed in SEEDS:
        outcome, told = left(protocol, workload, seed)
        assert outcome.violation is None, told
        total.update(outcome.stats)
    assert total["left"], "a sweep in which nobody left proves nothing"
    assert total["crashes"]


@pytest.mark.parametrize("guarantee", [Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE])
def test_a_weaker_promise_is_kept_when_slots_leave_as_well(guarantee):
    for seed in SEEDS:
        outcome, told = left("uncoordinated", "q12", seed, guarantee=guarantee.value)
        assert outcome.violation is None, told


@pytest.mark.parametrize("protocol", [p for p in PROTOCOLS if not PROTOCOLS[p].publishes_at_once])
def test_a_slot_leaves_with_a_line_just_before_and_nothing_is_replayed(protocol):
    outcome = simulate(Case(protocol, "q12", 1, faults=""), journal=True, leaves=[(1, 900)])
    assert outcome.violation is None, outcome.violation
    told = [entry for entry in outcome.journal if isinstance(entry, Happened)]
    whats = [entry.what for entry in told]
    assert not [what for what in whats if isinstance(what, SlotLost | MessageReplayed)]
    lines = [entry for entry in told if isinstance(entry.what, LineDecided | SlotLeft)]
    [at] = [n for n, entry in enumerate(lines) if isinstance(entry.what, SlotLeft)]
    before, gone, after = lines[at - 1 : at + 2]
    assert (before.at_us, before.what.epoch) == (gone.at_us, gone.epoch), "a line of this epoch"
    assert gone.what == SlotLeft(1, 1)
    assert after.what.epoch == gone.epoch + 1
    assert after.what.line == before.what.line


def test_a_run_that_ends_or_stops_while_a_slot_is_to_leave_does_not_wait_for_it():
    late = simulate(Case("aligned", "q12", 1, faults=""), leaves=[(0, DURATION_MS + 200)])
    assert (late.violation, late.stats.get("left", 0)) == (None, 0)
    both = simulate(Case("aligned", "q12", 1, faults=""), stops_ms=[901], leaves=[(1, 900)])
    assert (both.violation, both.stats.get("stopped")) == (None, 1)


# Broken on purpose.


def first_broken(protocol: str = "aligned", workload: str = "q3") -> str:
    """The name of the invariant that the first broken run breaks."""
    for seed in range(12):
        outcome, _ = left(protocol, workload, seed)
        if outcome.violation is not None:
            return outcome.violation.name
    return ""


def test_a_slot_that_leaves_before_a_line_covers_all_is_caught(monkeypatch):
    monkeypatch.setattr(coordinator, "covers", lambda *_: True)
    assert first_broken() == "line_holds_everything"


def test_a_successor_without_a_life_of_its_own_is_caught(monkeypatch):
    def lose(self, slot, incarnation):
        ended = real(self, slot, incarnation)
        self.incarnations[slot] = incarnation
        return ended

    real = Members.lose
    monkeypatch.setattr(Members, "lose", lose)
    assert first_broken() == "lost_slot_is_replaced"
