"""Processes that do not start, memories that are damaged, and coordinators that were deposed and write.

The simulator plays the driver here (`launching.py`, `SimStorage.resume`): what these runs hold it to is
the contract of whoever adapts the engine to a world.
"""

import random

import pytest
from sim_runs import Case, Outcome, first_that_shows, happened, kept

from snapline.journal.entry import Happened
from snapline.journal.fault_happenings import CoordinatorResumed, RecordSpoiled
from snapline.journal.happenings import Happening, LaunchFailed, SlotLaunched, SlotLost
from snapline.sim.world.costs import Costs
from snapline.sim.world.storage import SimStorage

SEEDS = range(12)
KILL = "kill slot=1 at=1200ms"


def shown(faults, shows, protocol="aligned") -> Outcome:
    cases = [Case(protocol, "counting", seed, records=20, faults=faults) for seed in SEEDS]
    return first_that_shows(cases, shows)


def notes(outcome: Outcome, *kinds: type[Happening]) -> list[Happened]:
    return [e for e in outcome.journal if isinstance(e, Happened) and isinstance(e.what, kinds)]


def struck(outcome: Outcome) -> bool:
    return all(strike.struck for strike in outcome.strikes)


# Processes that do not start.


@pytest.mark.parametrize("protocol", ["none", "aligned", "uncoordinated"])
def test_a_replacement_that_dies_before_it_registers_is_replaced(protocol):
    faults = f"{KILL}; launch failing slot=1 at=1100ms for=300ms"
    outcome = shown(faults, lambda o: len(notes(o, LaunchFailed)) >= 2, protocol)
    lives = [(n.actor, n.what.incarnation) for n in notes(outcome, SlotLaunched)]
    assert lives.count(("slot/1", 2)) >= 3, "one life, three processes"
    assert len(notes(outcome, SlotLost)) == 1, "the engine hears of one loss"
    assert struck(outcome)


def test_a_slot_that_does_not_start_at_the_very_beginning_is_started_again():
    outcome = shown("launch failing slot=0 at=0ms for=200ms", lambda o: o.stats["launch failed"])
    assert outcome.stopped is None
    assert outcome.stats["rollbacks"] == 0


def test_a_slot_that_never_starts_ends_the_run_with_a_word():
    faults = f"{KILL}; launch failing slot=1 at=1100ms for=60s"
    outcome = shown(faults, lambda o: o.stopped is not None)
    assert "slot 1 does not start: 10 processes failed" in outcome.stopped
    assert outcome.vacuous is None
    assert len(notes(outcome, LaunchFailed)) <= 10


def test_a_process_that_registers_too_late_is_given_up_and_turned_away():
    faults = f"{KILL}; launch slow slot=1 700ms at=1190ms for=100ms"
    outcome = shown(faults, lambda o: o.stats["sent away"] > 0)
    assert len(notes(outcome, SlotLost)) == 1
    assert struck(outcome)


def test_a_process_that_was_given_up_takes_the_life_if_nobody_else_has_it():
    faults = f"{KILL}; launch slow slot=1 650ms at=1190ms for=620ms"
    outcome = shown(faults, lambda o: o.stats["late"] > 0)
    assert len(notes(outcome, SlotLost)) == 1


def test_a_slow_start_within_the_time_costs_time_and_nothing_else():
    faults = f"{KILL}; launch slow slot=1 300ms at=1190ms for=100ms"
    outcome = shown(faults, struck)
    assert len([n for n in notes(outcome, SlotLaunched) if n.actor == "slot/1"]) == 2


# Memories that are damaged.

RECORDS = [f"{how} {record}" for how in ("damage", "lose") for record in ("decision", "manifest")]


@pytest.mark.parametrize("record", RECORDS)
def test_who_resumes_from_a_damaged_memory_stops_with_a_word(record):
    faults = f"{record} at=1200ms; kill coordinator at=1600ms for=100ms"
    outcome = shown(faults, lambda o: o.stopped is not None)
    assert outcome.stopped.startswith("the run cannot be resumed: ")
    assert not notes(outcome, CoordinatorResumed)
    [spoiled] = notes(outcome, RecordSpoiled)
    assert spoiled.what.lost == ("lose" in record)


@pytest.mark.parametrize("record", RECORDS)
def test_no_seed_goes_on_from_an_older_memory_or_publishes_twice(record):
    """Also where the newest one of all is gone, and nothing is left that was decided after it."""
    for seed in SEEDS:
        faults = f"{record} at=1500ms; kill coordinator at=1501ms for=100ms"
        outcome = kept(Case("aligned", "counting", seed, records=20, faults=faults))
        assert outcome.stats["commits"] == 0 or outcome.stopped or "manifest" in record


def test_what_nobody_reads_again_does_no_harm():
    outcome = shown("damage decision at=1200ms", struck)
    assert outcome.stopped is None


@pytest.mark.parametrize("record", ["damage manifest", "lose manifest"])
def test_output_that_cannot_be_read_is_not_judged(record):
    outcome = shown(f"{record} at=1200ms", struck)
    assert outcome.stopped.startswith("the public output cannot be read: manifest")


# A coordinator that was deposed.


class Paused:
    """A process that stands still, and a world in which everything happens at once."""

    alive, paused = True, True

    def __init__(self):
        self.backlog = []
        self.now_us = 0

    def at(self, at_us, action):
        action()

    def call(self, action):
        self.backlog.append(action)


def test_what_a_paused_process_had_not_sent_is_written_when_it_goes_on():
    world, log = Paused(), []
    storage = SimStorage(world, Costs(), random.Random(1))
    for n in range(20):
        storage.call(1, world, lambda n=n: log.append(n), lambda: None, lambda: None)
    left = len(log)
    assert 0 < left < 20
    world.paused = False
    for action in world.backlog:
        action()
    assert sorted(log) == list(range(20))


@pytest.mark.parametrize("protocol", ["none", "aligned", "uncoordinated"])
def test_a_coordinator_that_comes_back_hears_that_its_slots_left_and_is_deposed(protocol):
    outcome = shown("pause coordinator at=900ms for=1s", lambda o: o.stats["deposed"] > 0, protocol)
    assert happened(outcome.journal)[CoordinatorResumed] == 1
