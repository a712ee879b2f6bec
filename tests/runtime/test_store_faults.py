"""A store that is away, and snapshots that are damaged: what a whole run makes of them."""

from itertools import pairwise

import pytest
from process_slots import committed, lost, run_processes, strike

from snapline.engine.slot.checkpoints import key_of
from snapline.journal.fault_happenings import (
    FaultEnded,
    Slowed,
    SnapshotDamaged,
    StoreAway,
    StoreBack,
    StoreUnreliable,
)
from snapline.journal.happenings import JobRunning, LineDecided, SlotLost, StoreAwaited


@pytest.mark.parametrize(
    "protocol", [pytest.param("aligned", marks=pytest.mark.slow), "uncoordinated"]
)
def test_a_slot_that_dies_while_the_store_is_away_is_restored_when_it_is_back(tmp_path, protocol):
    seen, injectors = set(), []

    def break_it(driver, entry):
        """Behind a line the store goes away, then a slot dies; it is back when the driver waits for it."""
        if committed(driver, entry) and not injectors:
            injectors.append(strike(driver, "store outage at=0ms for=1h"))
        elif isinstance(entry.what, StoreAway):
            driver.loop.post(lambda: driver.killer.kill(1))
        elif isinstance(entry.what, SlotLost | StoreAwaited):
            seen.add(type(entry.what))
            if seen == {SlotLost, StoreAwaited}:
                driver.loop.after(0.3, come_back)

    def come_back():
        injectors[0].away_until_ms = 0
        injectors[0]._bring_store_back(*injectors[0].schedule.faults)

    outcome = run_processes(tmp_path, protocol, on_event=break_it, until=lost)
    assert (outcome.problem, outcome.problems) == (None, [])
    assert outcome.lost == [1]
    whats = [type(entry.what) for entry in outcome.happened]
    away, back = whats.index(StoreAway), whats.index(StoreBack)
    assert LineDecided in whats[:away], "something could be restored"
    assert SlotLost in whats[away:back]
    assert StoreAwaited in whats[away:back], "the user is told why nothing goes on"
    meanwhile = whats[away:back]
    assert JobRunning not in meanwhile
    assert meanwhile.count(LineDecided) <= 2, "nothing counts meanwhile but what was on its way"
    assert outcome.commits > 0
    assert (outcome.driver.directory.path / "store").is_dir()


def test_an_outage_ends_with_the_run(tmp_path):
    def give_up(driver, entry):
        if isinstance(entry.what, StoreAway):
            driver.loop.post(lambda: driver.finish("enough"))

    outcome = run_processes(tmp_path, "aligned", "store outage at=800ms for=1m", on_event=give_up)
    assert outcome.problem == "enough"
    assert not outcome.what(StoreBack)
    directory = outcome.driver.directory
    assert (directory.path / "store").is_dir()
    assert not list(directory.path.glob("store.away*")), "it is not away any more"


def damage_the_line_and_kill(driver, entry, seen):
    """As soon as a few lines are committed: one snapshot of the newest, and a slot."""
    if not committed(driver, entry):
        return
    seen.append(entry)
    if len(seen) == 4:

        def act():
            task = driver.job.hosted[1][0]
            driver.storage.store.damage(key_of(driver.engine.decider.chains[task][-1]))
            driver.killer.kill(1)

        driver.loop.post(act)


def test_damage_to_the_newest_line_costs_nothing_while_its_output_is_held_back(tmp_path):
    seen = []
    outcome = run_processes(
        tmp_path,
        "aligned",
        publish_lag=1,
        on_event=lambda driver, entry: damage_the_line_and_kill(driver, entry, seen),
        until=lost,
    )
    assert (outcome.problem, outcome.problems) == (None, [])
    assert outcome.lost == [1]
    damaged = seen[3].what.line
    after = outcome.what(LineDecided)[len(seen[:4]) + 1 :]
    assert len(seen) > 4, "the run went on"
    begun = [entry for entry in after if entry.what.epoch != entry.epoch]
    assert any(
        all(entry.what.line[task] < number for task, number in damaged.items()) for entry in begun
    ), "it went on at the line before"


def test_damage_to_the_published_line_ends_the_run_and_nothing_wrong_is_public(tmp_path):
    seen = []
    outcome = run_processes(
        tmp_path,
        "aligned",
        on_event=lambda driver, entry: damage_the_line_and_kill(driver, entry, seen),
        until=lost,
    )
    assert outcome.problem is not None
    assert outcome.problem.startswith("the published line is damaged (object snapshot/")
    assert outcome.problems, "the run did not come to its end"
    assert {problem.kind for problem in outcome.problems} == {"missing"}
    assert sum(len(batch) for batch in outcome.outputs.values()) > 0


@pytest.mark.parametrize(
    "protocol", [pytest.param("aligned", marks=pytest.mark.slow), "uncoordinated"]
)
def test_damage_that_nobody_reads_is_never_noticed(tmp_path, protocol):
    struck = []

    def damage(driver, entry):
        if committed(driver, entry) and not struck:
            struck.append(strike(driver, "damage slot=1 at=0ms"))

    outcome = run_processes(
        *(tmp_path, protocol),
        duration_ms=1_500,
        on_event=damage,
        until=lambda driver, entry: isinstance(entry.what, SnapshotDamaged),
    )
    assert (outcome.problem, outcome.problems, outcome.lost) == (None, [], [])
    assert len(outcome.what(SnapshotDamaged)) == 1


@pytest.mark.parametrize(
    ("fault", "what"),
    [
        pytest.param("store slow 150ms at=500ms for=2500ms", Slowed, marks=pytest.mark.slow),
        ("store failing 30% at=500ms for=2500ms", StoreUnreliable),
    ],
)
def test_a_slow_or_failing_store_costs_time_and_no_slot(tmp_path, fault, what):
    outcome = run_processes(
        *(tmp_path, "uncoordinated", fault),
        duration_ms=2_000,
        until=lambda driver, entry: isinstance(entry.what, FaultEnded),
    )
    assert (outcome.problem, outcome.problems, outcome.lost) == (None, [], [])
    [begun], [over] = outcome.what(what), outcome.what(FaultEnded)
    assert begun.what.fault == over.what.fault == fault
    during = [e for e in outcome.what(LineDecided) if begun.at_us < e.at_us < over.at_us]
    assert during, "some calls succeed"
    if what is Slowed:
        gaps = [b.at_us - a.at_us for a, b in pairwise(during)]
        assert all(gap >= 0.14e6 for gap in gaps), "one decision at a time, each slow"
    assert outcome.complaints == []
