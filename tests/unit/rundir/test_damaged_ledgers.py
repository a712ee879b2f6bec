"""A run whose ledger or manifests are damaged is not resumed: one message names the file, at once."""

import os
import shutil
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapline.engine.coordinator.evidence import Evidence
from snapline.engine.coordinator.ledger import (
    WINDOW,
    decision_key,
    encode,
    last_number,
    read_last,
)
from snapline.engine.job import Settings
from snapline.errors import ObjectDamaged, ObjectMissing, RunDamaged, StoreUnavailable, UsageError
from snapline.ids import TaskId
from snapline.rundir.past import public_rows, read_past
from snapline.storage.api import rows_of
from snapline.storage.codec import digest_of
from snapline.storage.memory import MemoryStore
from snapline.storage.memory_output import MemoryOutlet
from written_ledger import Coordinator, WrittenLedger

WHOLE_EVERY = Settings().whole_every


@pytest.fixture(autouse=True)
def no_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda fd: None)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two runs of the same flow, to be copied."""
    return [
        WrittenLedger(tmp_path_factory.mktemp(name), rows=n) for name, n in (("a", 3), ("b", 5))
    ]


@pytest.fixture
def ledger(two, tmp_path):
    return two[0].copied(tmp_path)


@pytest.fixture
def other(two):
    return two[1]


def gone(path, other):
    path.unlink()


def cut(path, other):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def emptied(path, other):
    path.write_bytes(b"")


def flipped(path, other):
    """A digit is another one: it is still JSON, and the store's own digest of it is right."""
    said = path.read_bytes()[:-16].replace(b'"published":', b'"published":1', 1)
    said = said.replace(b'"number": ', b'"number": 1', 1)
    path.write_bytes(said + bytes.fromhex(digest_of(said)))


def a_byte(path, other):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def foreign(path, other):
    shutil.copy(other, path)


def a_directory(path, other):
    path.unlink()
    path.mkdir()


DAMAGES = [gone, cut, emptied, flipped, a_byte, foreign, a_directory]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_damaged_decision_ends_a_resume_with_its_name(ledger, other, damage, number):
    assert read_past(ledger.directory, ledger.job).number == 4
    damage(ledger.decision(number), other.decision(number))
    with pytest.raises(RunDamaged, match=f"decision/{number:08d}") as told:
        read_past(ledger.directory, ledger.job)
    assert "put the file back from a copy and resume, or start a new run" in str(told.value)
    assert str(ledger.directory.path) in str(told.value)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("place", [1, 2, 3])
def test_a_damaged_manifest_ends_a_resume_with_its_name(ledger, other, damage, place):
    damage(ledger.manifest(place), other.manifest(place))
    if (damage, place) == (gone, 3):
        # The last decision may not have been published yet, and publishing it again mends it.
        read_past(ledger.directory, ledger.job)
        return
    with pytest.raises(RunDamaged, match="manifest") as told:
        read_past(ledger.directory, ledger.job)
    assert str(ledger.directory.path / "output" / "manifests") in str(told.value)


def test_a_manifest_that_is_gone_although_later_decisions_rest_on_it_is_missed(tmp_path):
    ledger = WrittenLedger(tmp_path)
    ledger.coordinator.commit(rows=0)
    ledger.manifest(3).unlink()
    with pytest.raises(RunDamaged, match="manifest 3 is gone"):
        read_past(ledger.directory, ledger.job)


def test_a_ledger_of_another_run_with_the_same_flow_is_not_this_one(ledger, other):
    shutil.rmtree(ledger.directory.path / "store")
    shutil.copytree(other.directory.path / "store", ledger.directory.path / "store")
    with pytest.raises(RunDamaged, match="is that of another run"):
        read_past(ledger.directory, ledger.job)


@pytest.mark.parametrize("publish_lag", [0, 1])
def test_what_is_sound_is_resumed_whatever_was_held_back(tmp_path, publish_lag):
    ledger = WrittenLedger(tmp_path, publish_lag=publish_lag)
    past = read_past(ledger.directory, ledger.job)
    second = ledger.take_over("second", past)
    second.commit().commit()
    again = read_past(ledger.directory, ledger.job)
    assert (again.author, again.number) == ("second", past.number + 3)


# The end of the ledger.


def test_the_loss_of_the_last_decisions_shows_in_what_they_published(ledger):
    ledger.decision(4).unlink()
    with pytest.raises(RunDamaged, match=r"decision 4 .* is gone.* manifest 3 is public"):
        read_past(ledger.directory, ledger.job)


def test_the_loss_of_the_last_decisions_shows_in_the_files_of_their_epoch(tmp_path):
    ledger = WrittenLedger(tmp_path)
    ledger.coordinator.begin()
    (ledger.directory.path / "output" / "b-0.e2.i1.egress").touch()
    ledger.decision(5).unlink()
    with pytest.raises(RunDamaged, match=r"decision 5 .* is gone.* epoch 2 had begun"):
        read_past(ledger.directory, ledger.job)


def test_the_loss_of_the_last_decisions_shows_in_the_journal_of_their_driver(tmp_path):
    ledger = WrittenLedger(tmp_path)
    ledger.coordinator.commit(rows=0)
    ledger.note_decided(5)
    read_past(ledger.directory, ledger.job)
    ledger.decision(5).unlink()
    with pytest.raises(RunDamaged, match=r"decision 5 .* is gone.* decision 5 was made"):
        read_past(ledger.directory, ledger.job)


def test_a_store_that_is_away_proves_nothing_missing(ledger):
    ledger.directory.take_store_away("me")
    with pytest.raises(StoreUnavailable):
        read_past(ledger.directory, ledger.job)


def test_a_run_of_another_input_is_told_from_that_of_another_flow(ledger):
    for other, told in (("graph-x", "another input:"), ("x-input", "another dataflow, or with")):
        deployment = replace(ledger.job.deployment, fingerprint=other)
        with pytest.raises(UsageError, match=f"started with {told}"):
            read_past(ledger.directory, replace(ledger.job, deployment=deployment))


# In memory: every place, and gaps of every size.


def written(commits, rows=1, **hand):
    store, outlet = MemoryStore(), MemoryOutlet()
    coordinator = Coordinator(store, outlet, **hand)
    for number in range(commits):
        coordinator.commit(rows if number % 3 else 0)
        if number % 7 == 6:
            coordinator.begin()
    return store, outlet, coordinator.decider.number


def outcome(act):
    """What comes of it: an answer, or that something is missing."""
    try:
        return act()
    except ObjectMissing as error:
        return error


@settings(max_examples=40, deadline=None)
@given(commits=st.integers(1, 5 * WHOLE_EVERY), collect=st.booleans(), data=st.data())
def test_the_loss_of_any_one_decision_is_found_or_harmless(commits, collect, data):
    store, outlet, last = written(commits, collect=collect)
    whole = read_last(store, "graph-input")
    lost = data.draw(st.integers(max(1, last - WHOLE_EVERY - 5), last))
    store.delete(decision_key(lost))
    found = outcome(lambda: read_last(store, "graph-input"))
    if isinstance(found, ObjectMissing):
        assert decision_key(lost) in str(found) or "or it was collected" in str(found)
        return
    past = found
    if past == whole:
        assert lost < last
        return
    assert lost == last  # nothing in the ledger tells; if output would come twice, the manifests do
    published = outlet.last_published()
    if Evidence(manifest=published).objection(past) is None:
        rows = public_rows(past) if past is not None else {}
        public = sum(len(batch) for batch in rows_of(outlet, ["b/0"], "committed"))
        assert rows.get(TaskId("b/0"), 0) == public


@pytest.mark.parametrize("gap", [1, 2, WINDOW - 1, WINDOW])
@pytest.mark.parametrize("first", [1, 2, 31, 32, 33, 63, 64, 65])
def test_a_gap_is_not_the_end(gap, first):
    store, _, last = written(200, rows=0, collect=False)
    for number in range(first, first + gap):
        store.delete(decision_key(number))
    found = outcome(lambda: last_number(store))
    if isinstance(found, ObjectMissing):
        assert any(decision_key(n) in str(found) for n in range(first, first + gap))
    else:
        assert found == last > first + gap  # it was not in the way


@pytest.mark.parametrize("commits", [150, 200, 300])
def test_the_loss_of_any_decision_of_a_collected_ledger_is_found_or_harmless(commits):
    store, _, last = written(commits, rows=0)
    there = store.keys()
    assert len(there) < last
    for key in there:
        said = store.get(key)
        store.delete(key)
        found = outcome(lambda: last_number(store))
        if isinstance(found, ObjectMissing):
            assert key in str(found) or "or it was collected" in str(found)
        else:
            assert found == (last if key != decision_key(last) else last - 1)
        store.put(key, said)
    assert last_number(store) == last


def test_a_decision_that_comes_while_one_looks_is_no_gap():
    store, outlet, last = written(5)
    coordinator = Coordinator(store, outlet, "second", read_last(store, "graph-input"))
    last += 1

    class Late:
        """A store whose owner decides twice more, just after somebody found the end."""

        def get(self, key, digest=None):
            if key == decision_key(last + 2) and coordinator.decider.number == last:
                coordinator.commit(0).commit(0)
            return store.get(key, digest)

    assert last_number(Late()) == last + 2


@pytest.mark.parametrize("number", [1, 4, WHOLE_EVERY, WHOLE_EVERY + 1, WHOLE_EVERY + 2])
def test_a_decision_that_was_rewritten_with_care_does_not_follow_from_the_one_before(number):
    """Its digest is right, and so is everything in it; but its successor was made after another one."""
    store, _, _ = written(number, collect=False)
    while last_number(store) > number:
        store.delete(decision_key(last_number(store)))
    found = read_last(store, "graph-input")
    forged = replace(found, author="another", before="" if number == 1 else "0" * 32)
    store.delete(decision_key(number))
    store.put(decision_key(number), encode(forged))
    if number == 1:
        Coordinator(store, MemoryOutlet(), "third", found)
    with pytest.raises(ObjectDamaged, match="one of the two was replaced"):
        read_last(store, "graph-input")
