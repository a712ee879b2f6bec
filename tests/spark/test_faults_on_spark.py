"""Faults of more kinds than kills, done to whole runs on a real Spark; strangers at their ports.

The same without Spark, in more detail, is in tests/runtime.
"""

import resource
import threading
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from run_helpers import assert_dead, assert_usable_and_empty, commits, happenings, only
from scripted_faults import PATIENT, Script, Step, committed, hold_input, kill, outage, store_away
from spark_slots import parent_of

from held_input import Hold
from snapline.cli.run import EXIT
from snapline.engine.slot.checkpoints import key_of
from snapline.journal.fault_happenings import ProcessKilled, StoreAway, StoreBack
from snapline.journal.happenings import JobRunning, LineDecided, SlotCutOff, SlotLost
from snapline.rundir.spec import Spec
from snapline.runs import drive as drive_module
from snapline.runs.run import run
from snapline.runtime.driver.driver import Driver
from strangers import IDLE, disturb

pytestmark = pytest.mark.spark

BOTH = ["aligned", pytest.param("uncoordinated", marks=pytest.mark.slow)]


@pytest.fixture
def session(spark) -> Iterator[SparkSession]:
    """Whatever a run went through, the session stays usable and no slot stays in it."""
    assert_usable_and_empty(spark)
    yield spark
    assert_usable_and_empty(spark)


@pytest.fixture
def on_event(monkeypatch):
    """Be told by the driver itself what happens, and have the driver."""
    listeners = []

    class Watched(Driver):
        def note(self, actor, epoch, what):
            super().note(actor, epoch, what)
            for listener in listeners:
                listener(self, what)

    monkeypatch.setattr(drive_module, "Driver", Watched)
    return listeners.append


def a_spec(protocol, faults="", **options):
    options = {"rate": 1_000, "duration_ms": 4_000, "interval_ms": 400, **options}
    return Spec("q12", protocol=protocol, faults=faults, **options)


def journal_of(finished):
    return happenings(finished.directory.path / "journal", "driver-*")


def test_strangers_at_the_ports_of_driver_and_slots_disturb_nothing(
    session, tmp_path, monkeypatch, on_event
):
    threads = []
    drivers = []

    def let_them_in(driver, what):
        if isinstance(what, JobRunning):
            drivers.append(driver)
            slots = [
                (member.hello.host, member.hello.port) for member in driver.roster.members.values()
            ]
            for address in (driver.listener.address, *slots):
                threads.append(threading.Thread(target=disturb, args=(address,)))
                threads[-1].start()

    def let_go(driver, what):
        if len(threads) == 3 and not any(thread.is_alive() for thread in threads):
            hold.let_go()

    hold = Hold(tmp_path)
    hold_input(monkeypatch, hold)
    on_event(let_them_in)
    on_event(let_go)
    spec = a_spec("aligned", duration_ms=2_000)
    finished = run(spec, session, runs=tmp_path, timeouts=PATIENT)
    for thread in threads:
        thread.join()
    assert len(threads) == 3
    assert finished.verdict.kept == "yes", finished.verdict
    assert not only(journal_of(finished), SlotLost)
    assert sum(drivers[0].listener.refused.values()) >= IDLE + 4


@pytest.mark.parametrize("protocol", BOTH)
def test_a_slot_that_dies_while_the_store_is_away_is_restored_when_it_is_back(
    session, tmp_path, monkeypatch, protocol
):
    steps = [Step(committed, store_away(3_000)), Step(outage, kill(1))]
    script = Script(steps, Hold(tmp_path))
    script.install(monkeypatch)
    finished = run(a_spec(protocol), session, runs=tmp_path, timeouts=PATIENT)
    assert script.struck == script.steps
    assert finished.verdict.kept == "yes", finished.verdict
    found = journal_of(finished)
    whats = [type(entry.what) for entry in found]
    away, back = whats.index(StoreAway), whats.index(StoreBack)
    assert any(map(commits, found[:away])), "something could be restored"
    assert SlotLost in whats[away:back]
    assert JobRunning not in whats[away:back]
    assert any(map(commits, found[back:])), "the run went on"
    assert_dead(entry.what.pids[0] for entry in only(found, ProcessKilled))


@pytest.mark.parametrize("protocol", BOTH)
def test_of_two_slots_that_lose_each_other_one_is_given_up(session, tmp_path, protocol):
    faults = "cut slot=1 from=0 at=2s"
    finished = run(a_spec(protocol, faults), session, runs=tmp_path, timeouts=PATIENT)
    assert finished.verdict.kept == "yes", finished.verdict
    found = journal_of(finished)
    assert [entry.actor for entry in only(found, SlotCutOff)] == ["slot/1"]
    assert [entry.what.slot for entry in only(found, SlotLost)] == [1]


def damage_the_line_and_kill(on_event, monkeypatch, hold):
    """As soon as a few lines are committed: one snapshot of the newest, and a slot."""
    lines = []
    hold_input(monkeypatch, hold)

    def act(driver):
        task = driver.job.hosted[1][0]
        driver.storage.store.damage(key_of(driver.engine.decider.chains[task][-1]))
        driver.killer.kill(1)
        hold.let_go()

    def listen(driver, what):
        if isinstance(what, LineDecided) and what.epoch == driver.engine.epoch:
            lines.append(what.line)
            if len(lines) == 4:
                driver.loop.post(lambda: act(driver))

    on_event(listen)
    return lines


def test_damage_to_the_published_line_ends_the_run_and_nothing_wrong_is_public(
    session, tmp_path, monkeypatch, on_event
):
    damage_the_line_and_kill(on_event, monkeypatch, Hold(tmp_path))
    finished = run(a_spec("aligned"), session, runs=tmp_path, timeouts=PATIENT)
    assert EXIT[finished.verdict.kept] == 3
    assert finished.verdict.because.startswith("the published line is damaged")
    assert_dead(entry.what.pids[0] for entry in only(journal_of(finished), ProcessKilled))


@pytest.mark.slow
def test_damage_to_the_newest_line_costs_nothing_while_its_output_is_held_back(
    session, tmp_path, monkeypatch, on_event
):
    lines = damage_the_line_and_kill(on_event, monkeypatch, Hold(tmp_path))
    finished = run(a_spec("aligned", publish_lag=1), session, runs=tmp_path, timeouts=PATIENT)
    assert finished.verdict.kept == "yes", finished.verdict
    assert len(lines) > 4, "the run went on"


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["aligned", "uncoordinated"])
@pytest.mark.parametrize("seconds", [2, 600])
def test_slots_that_can_write_nothing_go_on_when_they_can_or_the_run_says_why_not(
    session, tmp_path, on_event, protocol, seconds
):
    """The kernel lets the slots, and those that come in their place, make no file larger for a while."""
    daemons = []
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(pid, limits):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)

    def listen(driver, what):
        if isinstance(what, LineDecided) and what.epoch == driver.engine.epoch and not daemons:
            slots = [member.hello.pid for member in driver.roster.members.values()]
            daemons.append(parent_of(slots[0]))  # new processes are forked from it
            for pid in (*slots, *daemons):
                limit(pid, (0, unlimited[1]))
            driver.loop.after(seconds, lambda: limit(daemons[0], unlimited))

    on_event(listen)
    try:
        finished = run(a_spec(protocol, duration_ms=5_000), session, runs=tmp_path)
    finally:
        limit(daemons[0], unlimited)
    found = journal_of(finished)
    assert only(found, SlotLost)
    if seconds == 2:
        assert finished.verdict.kept == "yes", finished.verdict
    else:
        assert finished.verdict.kept == "unknown"
        assert "File too large" in finished.verdict.because
        assert len(finished.verdict.because.splitlines()) == 1
