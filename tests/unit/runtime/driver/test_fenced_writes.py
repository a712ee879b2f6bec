"""What a driver writes besides its decisions: nothing of it reaches a run that another has taken over."""

import os
import socket
import subprocess
import threading
import time
from types import SimpleNamespace

import pytest

from snapline.engine.coordinator.evidence import Evidence
from snapline.engine.coordinator.ledger import closing, decision_key, newest_decision
from snapline.engine.shell import Ticket
from snapline.errors import (
    Deposed,
    ObjectDamaged,
    ObjectMissing,
    StorageError,
    StoreUnavailable,
    UsageError,
)
from snapline.rundir import presence, results
from snapline.rundir.past import read_past
from snapline.rundir.presence import Presence, refuse_if_driven
from snapline.rundir.results import settle
from snapline.runtime.driver import decisions as module
from snapline.runtime.driver.decisions import Decisions
from snapline.runtime.driver.tenure import Tenure
from snapline.storage.files.store import FileStore
from written_ledger import WrittenLedger

MINE = {"kept": "yes", "because": "all is well", "problem": None, "rows": {"b": 9}}
OTHER = {"kept": "unknown", "because": "deposed", "problem": "deposed", "rows": {"b": 3}}


@pytest.fixture(autouse=True)
def no_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda fd: None)


@pytest.fixture
def ledger(tmp_path):
    return WrittenLedger(tmp_path)


@pytest.fixture
def replaced(ledger):
    """A second driver has taken over, and ended the run."""
    past = read_past(ledger.directory, ledger.job)
    ledger.take_over("second", past).commit()
    settle(ledger.directory, MINE, "second")
    return ledger


# The verdict.


def test_the_last_decision_of_a_run_that_is_over_names_its_verdict(ledger):
    directory = ledger.directory
    assert directory.result() is None
    settle(directory, MINE, "first")
    assert directory.result() == MINE
    past = read_past(directory, ledger.job)
    assert (past.number, past.over) == (
        5,
        newest_decision(directory.store, directory.identity).over,
    )
    assert past.over
    settle(directory, MINE, "first")  # once more, as after an answer that was lost
    assert read_past(directory, ledger.job).number == 5


def test_who_was_replaced_writes_no_verdict(replaced):
    file = replaced.directory.path / "result.json"
    before = file.read_bytes()
    with pytest.raises(Deposed, match="another driver has taken"):
        settle(replaced.directory, OTHER, "first")
    assert file.read_bytes() == before


def test_who_loses_the_race_for_the_last_decision_writes_no_verdict(ledger, monkeypatch):
    """Another driver decides between the look at the ledger and the write."""
    directory = ledger.directory
    past = read_past(directory, ledger.job)
    honest = closing

    def late(*arguments):
        ledger.take_over("second", past)
        return honest(*arguments)

    monkeypatch.setattr(results, "closing", late)
    with pytest.raises(Deposed):
        settle(directory, OTHER, "first")
    assert not (directory.path / "result.json").exists()


@pytest.mark.parametrize("how", ["overwritten", "damaged", "gone"])
def test_a_result_that_the_ledger_does_not_name_is_ignored(replaced, how):
    directory = replaced.directory
    file = directory.path / "result.json"
    match how:
        case "overwritten":
            directory.write("result.json", OTHER)  # as an earlier version of a driver would
        case "damaged":
            file.write_text(file.read_text()[:40])
        case "gone":
            file.unlink()
    assert directory.result() == MINE


def test_a_result_without_a_word_in_the_ledger_does_not_end_a_run(ledger):
    ledger.directory.write("result.json", OTHER)
    assert ledger.directory.result() is None
    assert "is ignored" in ledger.directory.why_not_over()


def test_a_run_that_goes_on_has_no_verdict_any_more(ledger):
    settle(ledger.directory, OTHER, "first")
    assert ledger.directory.result() == OTHER
    past = read_past(ledger.directory, ledger.job)
    ledger.take_over("second", past).commit()
    assert ledger.directory.result() is None


def test_a_verdict_whose_decision_is_gone_is_none(ledger):
    settle(ledger.directory, MINE, "first")
    ledger.decision(5).unlink()
    assert ledger.directory.result() is None


@pytest.mark.parametrize("file", ["run.json", "result.json"])
def test_a_json_file_that_was_changed_by_a_digit_is_not_believed(tmp_path, file):
    directory = WrittenLedger(tmp_path, commits=0).directory
    directory.write(file, {"version": 4, "seed": 12})
    assert directory.read(file) == {"version": 4, "seed": 12}
    path = directory.path / file
    path.write_text(path.read_text().replace("12", "13"))
    with pytest.raises(UsageError, match=f"{file} is not what was written"):
        directory.read(file)


def test_json_files_are_durable_with_their_names(ledger, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    ledger.directory.write("run.json", {"a": 1})
    draft, folder = synced
    assert "run.json" in os.path.basename(draft)
    assert folder == str(ledger.directory.path)


def test_all_drivers_agree_on_when_input_began_to_be_due(ledger):
    assert ledger.directory.agreed_origin(5.25) == 5.25
    assert ledger.directory.agreed_origin(9.5) == 5.25


# The store.


def test_a_replaced_driver_does_not_mend_what_its_successor_broke_on_purpose(ledger):
    directory = ledger.directory
    first = Tenure(directory, ledger.job)
    ledger.take_over(first.author, first.past)
    second = Tenure(directory, ledger.job)
    ledger.take_over(second.author, second.past)
    directory.trouble.slow(1, 60_000)
    first.end(first.past.number + 1)
    assert directory.trouble.now()[0] > 0
    directory.take_store_away(second.author)
    first.end(first.past.number + 1)
    assert not (directory.path / "store").exists()
    second.end(second.past.number + 1)
    assert (directory.path / "store").exists()
    assert directory.trouble.now()[0] == 0


def test_a_driver_that_takes_over_mends_what_a_dead_one_broke(ledger):
    ledger.directory.trouble.fail(100, 60_000)
    ledger.directory.take_store_away("dead")
    assert Tenure(ledger.directory, ledger.job).past.number == 4


def test_a_driver_that_takes_over_waits_for_a_store_that_does_not_answer(ledger, monkeypatch):
    (ledger.directory.path / "store").rename(ledger.directory.path / "elsewhere")
    waits = threading.Event()

    def come_back():
        waits.wait(120)
        (ledger.directory.path / "elsewhere").rename(ledger.directory.path / "store")

    returning = threading.Thread(target=come_back)
    returning.start()
    honest = time.sleep
    monkeypatch.setattr(time, "sleep", lambda seconds: (waits.set(), honest(seconds)))
    try:
        assert Tenure(ledger.directory, ledger.job).past.number == 4
    finally:
        monkeypatch.setattr(time, "sleep", honest)
        waits.set()
        returning.join()


# What the thread writes.


class Answers:
    """Who asked; what came of it."""

    def __init__(self):
        self.heard = []

    def done(self, ticket):
        self.heard.append("done")

    def failed(self, ticket):
        self.heard.append("failed")

    def conflict(self, ticket, found):
        self.heard.append("conflict")

    def give_up(self, error):
        self.heard.append(error)


def answered(store=None, outlet=None, *, times=1):
    """What a coordinator hears that decides, or publishes."""
    heard, posted = Answers(), []
    writing = Decisions(
        SimpleNamespace(store=store, outlet=outlet),
        posted.append,
        lambda story: None,
        heard.give_up,
    )
    for _ in range(times):
        if store is not None:
            writing.decide(heard, Ticket("decision", 1, None, 1), b"mine")
        else:
            writing.publish(heard, Ticket("manifest", 1, None, 1), 1, {}, lambda: None)
    writing.close()
    for action in posted:
        action()
    return heard.heard


class Outlet:
    """One that says what it is told."""

    def __init__(self, answer):
        self.answer = answer

    def publish(self, number, extents):
        if isinstance(self.answer, StorageError):
            raise self.answer
        return self.answer


def test_what_may_heal_is_tried_again_and_what_cannot_is_given_up(monkeypatch):
    away, missing, damaged = (
        StoreUnavailable("away"),
        ObjectMissing("late"),
        ObjectDamaged("broken"),
    )
    assert answered(outlet=Outlet(True)) == ["done"]
    assert answered(outlet=Outlet(away), times=3) == ["failed"] * 3
    assert answered(outlet=Outlet(missing), times=3) == ["failed"] * 3
    assert answered(outlet=Outlet(damaged)) == [damaged]
    [given_up] = answered(outlet=Outlet(False))
    assert "manifest 1 is public with other rows" in str(given_up)
    monkeypatch.setattr(module, "SIGHT_SECONDS", 0.0)
    assert answered(outlet=Outlet(missing)) == [missing]


def test_a_decision_that_cannot_be_read_is_no_reason_to_try_again(tmp_path):
    store = FileStore(tmp_path)
    assert answered(store) == ["done"]
    assert answered(store) == ["done"]
    other = FileStore(tmp_path / "other")
    other.put(decision_key(1), b"theirs")
    assert answered(other) == ["conflict"]
    file = other.path(decision_key(1))
    file.unlink()
    file.mkdir()
    [given_up] = answered(other)
    assert str(file) in str(given_up)


# Who runs it.


def test_a_second_driver_is_told_who_runs_a_run(ledger):
    refuse_if_driven(ledger.directory)
    word = Presence.announce(ledger.directory, "me")
    with pytest.raises(UsageError, match=f"run by process {os.getpid()} on .*, since 20"):
        refuse_if_driven(ledger.directory)
    word.leave()
    refuse_if_driven(ledger.directory)
    assert not (ledger.directory.path / "driver.json").exists()


def test_a_word_that_a_dead_or_stopped_driver_left_is_no_hindrance(ledger):
    Presence.announce(ledger.directory, "me")
    said = ledger.directory.read("driver.json")
    dead = subprocess.Popen(["true"])
    dead.wait()
    for stale in ({"pid": dead.pid}, {"started": "1"}):
        ledger.directory.write("driver.json", {**said, **stale})
        refuse_if_driven(ledger.directory)
    (ledger.directory.path / "driver.json").write_text("{")
    refuse_if_driven(ledger.directory)


def test_a_driver_that_was_replaced_leaves_the_word_of_its_successor(ledger):
    first = Presence.announce(ledger.directory, "first")
    second = Presence.announce(ledger.directory, "second")
    first.beat()
    first.leave()
    assert ledger.directory.read("driver.json")["author"] == "second"
    second.leave()


def test_a_driver_of_another_machine_lives_if_it_shows_a_sign_of_life(ledger, monkeypatch):
    word = Presence.announce(ledger.directory, "me")
    monkeypatch.setattr(socket, "gethostname", lambda: "elsewhere")
    monkeypatch.setattr(presence, "WATCHED_S", 0.3)
    refuse_if_driven(ledger.directory)
    honest = time.sleep
    monkeypatch.setattr(time, "sleep", lambda seconds: (honest(0.01), word.beat()))
    with pytest.raises(UsageError, match="is being run by process"):
        refuse_if_driven(ledger.directory)
    word.leave()


def test_evidence_that_agrees_says_nothing(ledger):
    past = read_past(ledger.directory, ledger.job)
    assert Evidence(past.number, past.epoch, past.published).objection(past) is None
