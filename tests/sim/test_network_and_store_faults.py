"""Delays around the time-out, lost connections, partitions, dead drivers, a store that fails at times."""

from dataclasses import replace
from random import Random

import pytest
from sim_runs import FRESH, Case, can_run, happened, kept
from test_faults_happen import each_protocol, journeys, notes, saw, shown

from snapline.chaos.faults import KINDS, At, Kill, describe
from snapline.chaos.plan import draw
from snapline.chaos.soak import soak
from snapline.core.events import StoreFailed
from snapline.ids import slot_of
from snapline.journal.entry import Handled
from snapline.journal.fault_happenings import (
    ConnectionCut,
    CoordinatorKilled,
    CoordinatorResumed,
    ProcessKilled,
    ProcessPaused,
    StoreUnreliable,
)
from snapline.journal.happenings import JobRunning, LineDecided, SlotLost
from snapline.protocols import PROTOCOLS
from snapline.sim.case import DURATION_MS
from snapline.sim.world.costs import Costs
from snapline.sim.world.network import Link
from snapline.sim.world.world import World

TIMEOUT_MS = Costs().timeout_us // 1000


def lost(outcome):
    return [note.what.slot for note in notes(outcome, SlotLost)]


# Delay.


@each_protocol
def test_what_a_slow_slot_sends_and_receives_takes_that_much_longer(protocol):
    faults = f"delay slot=1 {TIMEOUT_MS - 10}ms at=500ms for=2s"
    outcome = shown(protocol, faults, lambda o: bool(journeys(o, 0, 1) and journeys(o, 1, 0)))
    assert lost(outcome) == []
    for source, target in ((0, 1), (1, 0)):
        during = [j for j in journeys(outcome, source, target) if 500_000 <= j[0] < 2_500_000]
        assert during
        assert all(taken - sent >= (TIMEOUT_MS - 10) * 1000 for sent, taken in during)


@each_protocol
@pytest.mark.parametrize("for_ms", [20, 2_000])
def test_a_delay_beyond_the_time_out_is_noticed_once_and_the_next_life_is_quick(protocol, for_ms):
    faults = f"delay slot=1 {TIMEOUT_MS + 10}ms at=1s for={for_ms}ms"
    outcome = shown(protocol, faults, saw(SlotLost))
    assert lost(outcome) == [1]
    [found] = notes(outcome, SlotLost)
    assert found.at_us == 1_000_000 + TIMEOUT_MS * 1000
    back = next(note.at_us for note in notes(outcome, JobRunning) if note.at_us > found.at_us)
    later = [taken - sent for sent, taken in journeys(outcome, 1, 2) if sent > back]
    assert all(took < TIMEOUT_MS * 1000 for took in later)


# Connections.


@each_protocol
@pytest.mark.parametrize("other", ["2", "coordinator"])
def test_a_lost_connection_is_noticed_at_once_and_nothing_is_lost_with_it(protocol, other):
    outcome = shown(protocol, f"cut slot=1 from={other} at=1s", saw(ConnectionCut, SlotLost))
    [loss] = notes(outcome, SlotLost)
    assert (loss.what.slot, loss.at_us) == (1, 1_000_000 + Costs().detect_us)


def test_what_is_sent_on_a_connection_that_broke_goes_nowhere():
    """Or a message would come behind one that was lost."""
    arrived: list[int] = []
    clock = World.__new__(World)
    clock.now_us, clock.heap, clock.planned, clock.finished = 0, [], 0, False
    link = Link(clock, Random(1), 100, arrived.append, lambda: 0, lambda: 0)
    for number in range(10):
        link.send(number, 1)
    link.disconnect()
    link.send(10, 1)
    assert link.overtake(11, 1, lambda item: True) == []
    clock.run(1_000_000)
    assert arrived == list(range(len(arrived)))
    assert len(arrived) < 10


@each_protocol
def test_who_is_on_the_other_side_of_a_partition_is_given_up(protocol):
    outcome = shown(protocol, "cut slot=0,1 from=2,coordinator at=1s for=600ms", saw(SlotLost))
    assert lost(outcome) == [0, 1]


@each_protocol
def test_a_short_partition_holds_everything_up_and_costs_nobody(protocol):
    cut_us, healed_us = 1_000_000, 1_240_000
    faults = "cut slot=0,1 from=2,coordinator at=1s for=240ms"

    def held_up(outcome):
        return [j for j in journeys(outcome, 1, 2) if j[0] < healed_us <= j[1]]

    outcome = shown(protocol, faults, lambda o: bool(held_up(o)))
    assert lost(outcome) == []
    across = [*journeys(outcome, 1, 2), *journeys(outcome, 2, 0)]
    assert not [j for j in across if cut_us <= j[0] and j[1] < healed_us]
    heard = [
        entry.at_us
        for entry in outcome.journal
        if isinstance(entry, Handled) and hasattr(entry.event, "meta")
        if slot_of(entry.event.meta.task) == 0
    ]
    assert not [at for at in heard if cut_us < at < healed_us]


def test_a_life_that_takes_over_is_not_cut_off():
    """By the process, not by the name: or a long cut would cost one life after the other."""
    faults = "cut slot=1 from=2 at=1s for=1500ms"
    outcome = shown("aligned", faults, saw(SlotLost))
    assert lost(outcome) == [1]
    back = next(note.at_us for note in notes(outcome, JobRunning) if note.at_us > 1_250_000)
    assert [j for j in journeys(outcome, 1, 2) if back < j[1] < 2_500_000]


# Drivers and executors.


@each_protocol
@pytest.mark.parametrize("when", ["at=1200ms", "on=round", "on=recovery"])
def test_a_driver_that_dies_takes_its_slots_along_and_is_resumed(protocol, when):
    faults = f"kill driver {when}" + ("; kill slot=1 at=1s" if "recovery" in when else "")
    outcome = shown(protocol, faults, saw(CoordinatorKilled, CoordinatorResumed))
    [killed] = notes(outcome, CoordinatorKilled)
    [resumed] = notes(outcome, CoordinatorResumed)
    assert resumed.at_us - killed.at_us == 50_000
    assert killed.what.fault == resumed.what.fault == f"kill driver {when}"


@each_protocol
def test_a_driver_that_stands_still_is_a_coordinator_that_stands_still(protocol):
    outcome = shown(protocol, "pause driver at=1200ms for=900ms", saw(CoordinatorResumed))
    assert [note.actor for note in notes(outcome, ProcessPaused)] == ["coordinator"]


def test_every_slot_has_an_executor_of_its_own():
    outcome = shown("aligned", "kill executor=1 at=1200ms", saw(ProcessKilled))
    assert lost(outcome) == [1]


# The store.


@each_protocol
def test_a_store_that_fails_now_and_then_costs_time_and_no_slot(protocol):
    seen = saw(StoreUnreliable, StoreFailed, never=SlotLost)

    def both(outcome):
        times = [note.at_us for note in notes(outcome, LineDecided)]
        return seen(outcome) and any(500_000 < at < 2_300_000 for at in times)

    outcome = shown(protocol, "store failing 8% at=300ms for=2s", both)
    assert outcome.stats["rollbacks"] == 0


def test_a_store_that_always_fails_is_an_outage_for_snapshots_and_decisions():
    outcome = shown("aligned", "store failing 100% at=800ms for=700ms", saw(StoreUnreliable))
    times = [note.at_us for note in notes(outcome, LineDecided)]
    assert not [at for at in times if 800_000 < at < 1_500_000]
    assert [at for at in times if at > 1_500_000]


# All of them.


@pytest.mark.parametrize(
    "protocol", [name for name, p in PROTOCOLS.items() if not p.publishes_at_once]
)
@pytest.mark.parametrize("seed", sorted({1, 2, FRESH}))
def test_plans_of_all_kinds_leave_every_promise_kept(protocol, seed):
    workload = "reachability" if can_run(protocol, "reachability") and seed % 2 else "counting"
    faults = describe(draw(seed, 3, DURATION_MS, kinds=KINDS))
    kept(Case(protocol, workload, seed, records=20, faults=faults))


SCALE = 8
"""A simulated slot may be silent for an eighth of the time that a real one may."""


def scaled(fault):
    """What chaos draws for a real run, in the time of the simulator."""
    if isinstance(fault, Kill):
        return Kill(fault.slots, At(fault.when.ms // SCALE))
    names = [name for name in ("at_ms", "for_ms", "delay_ms") if hasattr(fault, name)]
    return replace(fault, **{name: getattr(fault, name) // SCALE for name in names})


@pytest.mark.parametrize("intensity", ["low", "high"])
@each_protocol
def test_chaos_as_in_real_runs_leaves_every_promise_kept(protocol, intensity):
    for seed in (7, FRESH):
        plan = soak(f"seed={seed} intensity={intensity}", 3, DURATION_MS * SCALE)
        faults = describe(tuple(map(scaled, plan)))
        kept(Case(protocol, "counting", seed, records=20, faults=faults))


@pytest.mark.parametrize(
    "fault",
    [
        "pause slot=1 at=1s for=100ms",
        "delay slot=1 20ms at=1s for=100ms",
        "cut slot=1 from=2 at=1s for=100ms",
        "cut slot=0,1 from=2,coordinator at=1s for=100ms",
        "kill coordinator at=1s for=100ms",
        "kill driver at=1s",
        "pause driver at=1s for=100ms",
        "store outage at=1s for=100ms",
        "store slow 10ms at=1s for=100ms",
        "store failing 10% at=1s for=100ms",
    ],
)
def test_a_fault_is_written_down_with_its_statement_when_it_begins_and_when_it_is_over(fault):
    outcome = kept(Case("aligned", "counting", 3, records=20, faults=fault), journal=True)
    told = [e for e in outcome.journal if getattr(getattr(e, "what", None), "fault", None) == fault]
    assert told[0].at_us == 1_000_000
    assert told[-1].at_us == (1_050_000 if fault == "kill driver at=1s" else 1_100_000)
    assert happened(told)[type(told[0].what)] == (2 if "0,1" in fault else 1)
