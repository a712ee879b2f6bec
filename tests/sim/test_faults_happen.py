"""Each kind of fault alone: it really happens, by the journal, and the result is right all the same.

Worlds differ from seed to seed, so a fault need not show in each of them; within a few it must.
"""

from collections.abc import Callable

import pytest
from sim_runs import Case, Outcome, first_that_shows, happened, kept

from snapline.core.events import MessageArrived, SnapshotStored, SnapshotUnreadable, StoreFailed
from snapline.engine.job import Settings
from snapline.ids import slot_of
from snapline.journal.entry import Handled, Happened, Stamped
from snapline.journal.fault_happenings import (
    ConnectionCut,
    CoordinatorKilled,
    CoordinatorResumed,
    ProcessContinued,
    ProcessKilled,
    ProcessPaused,
    Slowed,
    SnapshotDamaged,
    StoreAway,
)
from snapline.journal.happenings import (
    CoordinatorDeposed,
    FrameFenced,
    Happening,
    LineDecided,
    ReportFenced,
    SlotLost,
)
from snapline.sim import run

PROTOCOLS = ("aligned", "uncoordinated", "unaligned")
SEEDS = range(8)

each_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)


def shown(
    protocol: str, faults: str, shows: Callable[[Outcome], bool], workload: str = "counting"
) -> Outcome:
    """A run under these faults in which something was seen."""
    cases = [Case(protocol, workload, seed, records=20, faults=faults) for seed in SEEDS]
    return first_that_shows(cases, shows)


def saw(*what: type, never: type | None = None) -> Callable[[Outcome], bool]:
    """Whether all of these happened, and something else did not."""

    def look(outcome: Outcome) -> bool:
        seen = happened(outcome.journal)
        return all(seen[each] for each in what) and not (never is not None and seen[never])

    return look


def notes(outcome: Outcome, *kinds: type[Happening]) -> list[Happened]:
    return [e for e in outcome.journal if isinstance(e, Happened) and isinstance(e.what, kinds)]


def journeys(outcome: Outcome, source: int, target: int) -> list[tuple[int, int]]:
    """When the messages between two slots were sent, and when they were taken."""
    sent = {(e.channel, e.seq): e.at_us for e in outcome.journal if isinstance(e, Stamped)}
    taken = [
        (entry.at_us, entry.event.message)
        for entry in outcome.journal
        if isinstance(entry, Handled) and isinstance(entry.event, MessageArrived)
    ]
    ends = (f"/{source}>", f"/{target}")
    return [
        (sent[message.channel, message.seq], at_us)
        for at_us, message in taken
        if ends[0] in message.channel and message.channel.endswith(ends[1])
    ]


# Slots die.


@each_protocol
def test_a_slot_dies_at_a_time_after_a_commit(protocol):
    outcome = shown(protocol, "kill slot=1 at=1200ms", lambda o: o.crashed_after_commit)
    [killed] = notes(outcome, ProcessKilled)
    assert (killed.actor, killed.at_us) == ("slot/1", 1_200_000)
    assert [note.what.slot for note in notes(outcome, SlotLost)] == [1]
    assert outcome.stats["rollbacks"] == 1


@each_protocol
def test_a_slot_dies_before_a_certain_effect(protocol):
    outcome = shown(protocol, "kill slot=1 step=60", saw(ProcessKilled, SlotLost))
    [killed] = notes(outcome, ProcessKilled)
    assert killed.what.fault == "kill slot=1 step=60"


@each_protocol
def test_a_slot_dies_while_another_is_recovered(protocol):
    faults = "kill slot=1 at=1200ms; kill slot=2 on=recovery"
    outcome = shown(protocol, faults, lambda o: o.stats["crash during recovery"] > 0)
    assert [note.actor for note in notes(outcome, ProcessKilled)] == ["slot/1", "slot/2"]
    assert outcome.stats["rollbacks"] == 2


@each_protocol
def test_a_slot_dies_in_a_round(protocol):
    outcome = shown(protocol, "kill slot=1 on=round", lambda o: o.stats["crash during a round"] > 0)
    [killed] = notes(outcome, ProcessKilled)
    assert killed.what.fault == "kill slot=1 on=round"


@each_protocol
def test_several_slots_die_at_once(protocol):
    outcome = shown(protocol, "kill slot=0,2 at=1200ms", saw(ProcessKilled))
    assert [(k.actor, k.at_us) for k in notes(outcome, ProcessKilled)] == [
        ("slot/0", 1_200_000),
        ("slot/2", 1_200_000),
    ]
    assert [note.what.slot for note in notes(outcome, SlotLost)] == [0, 2]


@each_protocol
def test_all_slots_die_at_once(protocol):
    outcome = shown(protocol, "kill slot=0,1,2 at=1200ms", lambda o: o.crashed_after_commit)
    assert len(notes(outcome, SlotLost)) == 3


# Slots that are slow or cut off, and come back.


@each_protocol
def test_a_slot_that_is_paused_beyond_the_time_out_comes_back_as_a_zombie(protocol):
    faults = "pause slot=1 at=1s for=600ms"
    outcome = shown(protocol, faults, saw(ProcessPaused, SlotLost, ProcessContinued, FrameFenced))
    assert outcome.stats["crashes"] == 0
    [zombie] = notes(outcome, ProcessContinued)
    after = [
        note for note in notes(outcome, ReportFenced, FrameFenced) if note.at_us >= zombie.at_us
    ]
    assert after, "what it still had to say was not heard"


@each_protocol
def test_a_slot_that_is_paused_for_a_moment_is_not_given_up(protocol):
    outcome = shown(protocol, "pause slot=1 at=1s for=100ms", saw(ProcessPaused, ProcessContinued))
    assert outcome.stats["rollbacks"] == 0


@each_protocol
@pytest.mark.parametrize("other", ["coordinator", "2"])
def test_a_slot_that_is_cut_off_is_given_up_and_then_ignored(protocol, other):
    faults = f"cut slot=1 from={other} at=1s for=600ms"
    outcome = shown(protocol, faults, saw(ConnectionCut, SlotLost, FrameFenced))
    assert [note.what.slot for note in notes(outcome, SlotLost)] == [1]
    assert outcome.stats["crashes"] == 0


@each_protocol
def test_a_short_cut_between_slots_delays_messages_and_nothing_more(protocol):
    cut_us, healed_us = 1_000_000, 1_240_000

    def delayed(outcome: Outcome) -> list[tuple[int, int]]:
        return [
            (at, arrived) for at, arrived in journeys(outcome, 1, 2) if at < healed_us <= arrived
        ]

    outcome = shown(protocol, "cut slot=1 from=2 at=1s for=240ms", lambda o: bool(delayed(o)))
    during = [at for at, arrived in journeys(outcome, 1, 2) if cut_us <= arrived < healed_us]
    assert all(at < cut_us for at in during), "it was sent before, and had arrived"
    assert outcome.stats["rollbacks"] == 0


@each_protocol
def test_a_short_cut_from_the_coordinator_delays_reports_and_nothing_more(protocol):
    cut_us, healed_us = 1_000_000, 1_240_000

    def reported(outcome: Outcome) -> list[int]:
        return [
            entry.at_us
            for entry in outcome.journal
            if isinstance(entry, Handled) and isinstance(entry.event, SnapshotStored)
            if slot_of(entry.event.meta.task) == 1
        ]

    outcome = shown(
        protocol,
        "cut slot=1 from=coordinator at=1s for=240ms",
        lambda o: any(healed_us <= at < healed_us + 50_000 for at in reported(o)),
    )
    assert not [at for at in reported(outcome) if cut_us <= at < healed_us]
    assert outcome.stats["rollbacks"] == 0


@each_protocol
def test_a_slow_network_costs_time_and_no_slot(protocol):
    faults = "delay slot=1 200ms at=500ms for=2500ms"
    outcome = shown(protocol, faults, saw(Slowed, never=SlotLost))
    undisturbed = kept(Case(protocol, "counting", outcome.case.seed, records=20, faults=""))
    assert outcome.virtual_ms > undisturbed.virtual_ms
    assert outcome.stats["rollbacks"] == 0


# The coordinator.


@each_protocol
def test_a_coordinator_that_died_is_resumed_from_the_last_line(protocol):
    faults = "kill coordinator at=1200ms for=200ms"
    outcome = shown(protocol, faults, saw(CoordinatorKilled, CoordinatorResumed))
    [resumed] = notes(outcome, CoordinatorResumed)
    decided = notes(outcome, LineDecided)
    last = [note for note in decided if note.at_us < resumed.at_us][-1]
    first = next(note for note in decided if note.at_us > resumed.at_us)
    assert any(last.what.line.values())
    assert first.what.epoch == last.what.epoch + 1
    assert all(n >= last.what.line[task] for task, n in first.what.line.items())


@each_protocol
def test_a_coordinator_that_was_away_finds_another_in_its_place(protocol):
    faults = "pause coordinator at=1200ms for=900ms"
    outcome = shown(protocol, faults, saw(ProcessPaused, CoordinatorResumed))
    assert len(notes(outcome, CoordinatorResumed)) == 1


def test_a_zombie_coordinator_that_decides_is_deposed():
    """Where a line is committed whenever it moves, the zombie soon has something to decide."""
    faults = "pause coordinator at=1200ms for=900ms"
    outcome = shown("uncoordinated", faults, saw(CoordinatorDeposed))
    [deposed] = notes(outcome, CoordinatorDeposed)
    assert deposed.at_us >= 2_100_000


# The store.


@each_protocol
def test_a_store_that_answers_nobody_delays_what_counts(protocol):
    faults = "store outage at=800ms for=700ms"
    outcome = shown(protocol, faults, saw(StoreAway, StoreFailed, never=SlotLost))
    assert outcome.stats["rollbacks"] == 0
    times = [note.at_us for note in notes(outcome, LineDecided)]
    assert not [at for at in times if 800_000 < at < 1_500_000]
    assert [at for at in times if at > 1_500_000]


@each_protocol
def test_a_slow_store_costs_commits(protocol):
    faults = "store slow 400ms at=300ms for=2s"
    outcome = shown(protocol, faults, saw(Slowed, never=SlotLost))
    undisturbed = kept(Case(protocol, "counting", outcome.case.seed, records=20, faults=""))
    assert outcome.stats["commits"] < undisturbed.stats["commits"]


# Damage.

DAMAGE = "damage slot=1 at=1400ms; kill slot=0 at=1401ms"


def with_lag(lag, monkeypatch):
    """Let all worlds publish with this lag."""
    original = run.build_job

    def build(*arguments):
        job = original(*arguments)
        settings = {name: getattr(job.settings, name) for name in Settings.__slots__}
        changed = Settings(**{**settings, "publish_lag": lag})
        object.__setattr__(job, "settings", changed)
        return job

    monkeypatch.setattr(run, "build_job", build)


@each_protocol
def test_damage_to_the_line_that_is_public_stops_the_run_with_a_clear_word(protocol, monkeypatch):
    with_lag(0, monkeypatch)
    outcome = shown(protocol, DAMAGE, lambda o: o.stopped is not None)
    assert happened(outcome.journal)[SnapshotUnreadable]
    assert "the published line is damaged" in outcome.stopped
    assert "output that was published already would come again" in outcome.stopped


@each_protocol
def test_with_a_lag_damage_to_the_newest_line_costs_nothing(protocol, monkeypatch):
    with_lag(1, monkeypatch)
    for seed in SEEDS:
        case = Case(protocol, "counting", seed, records=20, faults=DAMAGE)
        assert kept(case).stopped is None, case.command()
    outcome = shown(protocol, DAMAGE, saw(SnapshotDamaged, SnapshotUnreadable))
    assert outcome.stats["rollbacks"] == 2


def test_damage_beyond_the_public_line_is_as_if_it_had_never_been_stored(monkeypatch):
    """On a cycle the line lags behind the newest checkpoints, so damage may hit one beyond it."""
    with_lag(0, monkeypatch)
    outcome = shown(
        "uncoordinated", DAMAGE, lambda o: o.stats["damaged"] > 0 and o.stopped is None, "nhop"
    )
    assert outcome.stats["rollbacks"] == 1


@pytest.mark.parametrize(
    ("seed", "faults"),
    [
        (478, "kill slot=1 at=1381ms; damage slot=0 at=882ms"),
        (687, "kill slot=2 at=2018ms; kill slot=0 on=recovery; damage slot=2 at=1187ms"),
    ],
)
def test_damage_to_a_snapshot_is_damage_to_every_delta_on_top_of_it(seed, faults):
    """Both kept lines may rest on it, whatever their own numbers are."""
    outcome = kept(Case("aligned", "counting", seed, faults=faults), journal=True)
    assert happened(outcome.journal)[SnapshotUnreadable]


def test_damage_to_what_nobody_reads_again_is_not_noticed():
    outcome = shown("aligned", "damage slot=1 at=1400ms", saw(SnapshotDamaged))
    assert not happened(outcome.journal)[SnapshotUnreadable]


# None of it is the simulator's doing.


@each_protocol
def test_without_faults_nothing_of_the_kind_happens(protocol):
    outcome = kept(Case(protocol, "counting", 3, records=20, faults=""), journal=True)
    seen = happened(outcome.journal)
    for what in (
        ProcessKilled,
        SlotLost,
        FrameFenced,
        ReportFenced,
        CoordinatorDeposed,
        StoreFailed,
        CoordinatorResumed,
    ):
        assert not seen[what]
    assert outcome.stats["rollbacks"] == 0
