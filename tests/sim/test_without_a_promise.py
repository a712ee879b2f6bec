"""Protocols that promise nothing still end by themselves, and the judge says what they lost."""

import random
import re

import pytest
from sim_runs import TROUBLE, happened, kept

from journal_feeder import Feeder
from snapline.core.effects import Rollback, Scope
from snapline.core.events import MessageArrived
from snapline.journal.entry import COORDINATOR, Built, Handled, Happened
from snapline.journal.happenings import MessagesDiscarded, SlotLost, SlotRunning
from snapline.sim.case import Case
from snapline.sim.run import build_job
from snapline.sim.world.costs import Costs
from solo_protocol import SOLO

KILLS = "kill slot=1 at=900ms; kill slot=0,2 at=1500ms; kill slot=1 on=recovery"


def rollbacks(journal):
    return [
        effect
        for entry in journal
        if isinstance(entry, Handled) and entry.actor == COORDINATOR
        for effect in entry.effects
        if isinstance(effect, Rollback)
    ]


def is_of(entry, kind):
    return isinstance(entry, Happened) and isinstance(entry.what, kind)


# None.


def test_without_faults_none_gives_the_right_result():
    for workload in ("counting", "q3", "nhop"):
        assert kept(Case("none", workload, 3, records=20, faults="")).problems == ()


def test_after_a_kill_the_judge_names_the_records_that_none_lost():
    outcome = kept(Case("none", "counting", 3, faults="kill slot=1 at=900ms"))
    assert outcome.stats["crashes"] == 1
    lost = [problem for problem in outcome.problems if problem.startswith("missing")]
    assert any(re.match(r"missing (count of key \d+|record \d+:\d+)", problem) for problem in lost)


def test_under_none_only_the_lost_slot_restarts_and_it_restarts_empty():
    outcome = kept(Case("none", "counting", 3, faults="kill slot=1 at=900ms"), journal=True)
    [rollback] = rollbacks(outcome.journal)
    assert rollback.scope is Scope.LOST
    assert rollback.line.checkpoints == {"records/1": 0, "count/1": 0, "counts/1": 0}
    built = [e for e in outcome.journal if isinstance(e, Built) and e.actor != COORDINATOR]
    again = [entry.actor for entry in built if entry.incarnation > 1]
    assert again == ["records/1", "count/1", "counts/1"]
    assert all(entry.memo is None for entry in built)


def test_under_none_the_others_go_on_while_a_slot_is_away():
    """They put out rows all the time, and what they cannot send is discarded and counted."""
    faults = "kill slot=1 at=900ms for=1500ms"
    outcome = kept(Case("none", "counting", 3, faults=faults), journal=True)
    lost, back = (
        next(entry.at_us for entry in outcome.journal if is_of(entry, kind))
        for kind in (SlotLost, SlotRunning)
    )
    assert back - lost > 1_300_000
    delivered = [
        entry.at_us
        for entry in outcome.journal
        if isinstance(entry, Handled) and isinstance(entry.event, MessageArrived)
    ]
    meanwhile = [at_us for at_us in delivered if lost + 200_000 < at_us < back]
    assert meanwhile, "nobody took anything while the slot was away"
    assert back - meanwhile[-1] < 400_000, "they stopped: credit ran out"
    discarded = [e.what for e in outcome.journal if is_of(e, MessagesDiscarded)]
    assert sum(each.records for each in discarded) > 0


@pytest.mark.parametrize("workload", ["counting", "q12", "q3", "nhop", "sst"])
def test_slots_that_are_away_at_overlapping_times_come_back_one_by_one(workload):
    faults = "kill slot=1 at=700ms for=900ms; kill slot=2 at=1s for=300ms; kill slot=0 at=1500ms"
    for seed in range(1, 6):
        outcome = kept(Case("none", workload, seed, slots=3, faults=faults))
        assert outcome.stopped is None
        assert outcome.stats["rejoined"] >= 3


# A protocol under which a lost slot goes back alone.


@pytest.mark.parametrize("faults", [KILLS, TROUBLE, None], ids=["kills", "trouble", "drawn"])
@pytest.mark.parametrize("workload", ["counting", "q3", "nhop"])
def test_the_solo_protocol_runs_to_the_end(workload, faults):
    for seed in (1, 2):
        outcome = kept(Case("solo", workload, seed, records=24, faults=faults), protocol=SOLO)
        assert outcome.stopped is None
        assert outcome.stats["checkpoints"] > 0
        assert outcome.stats["rollbacks"] > 0


def test_under_the_solo_protocol_a_lost_slot_goes_back_alone_to_its_own_checkpoints():
    case = Case("solo", "counting", 3, faults="kill slot=1 at=1500ms")
    outcome = kept(case, journal=True, protocol=SOLO)
    [rollback] = rollbacks(outcome.journal)
    assert rollback.scope is Scope.LOST
    assert list(rollback.line.checkpoints) == ["records/1", "count/1", "counts/1"]
    assert all(rollback.line.checkpoints.values())
    again = [e for e in outcome.journal if isinstance(e, Built) and e.incarnation > 1]
    assert [entry.actor for entry in again] == ["records/1", "count/1", "counts/1"]
    assert all(entry.memo is not None for entry in again)


def test_slots_that_restart_alone_at_the_same_time_wait_for_each_other():
    """While one of them still loads its snapshots, nobody may send to it."""
    for seed in (1, 45):
        kept(Case("solo", "nhop", seed, records=24, faults=KILLS), protocol=SOLO)


def test_the_journal_of_the_solo_protocol_can_be_fed_back():
    """Also where a slot restarts alone, and so in its epoch, with other checkpoint numbers."""
    case = Case("solo", "counting", 3, faults=KILLS)
    journal = kept(case, journal=True, protocol=SOLO).journal
    assert happened(journal)[SlotLost] > 2
    rng = random.Random(f"{case.seed}:world")
    Costs.draw(rng)
    assert list(Feeder(build_job(case, SOLO, rng)).feed(journal)) == []
