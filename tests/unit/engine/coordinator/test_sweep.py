"""What is swept when an epoch begins: what lives of earlier epochs left, and nobody needs."""

import pytest

from engine_fakes import meta
from snapline.engine.coordinator.sweep import sweep_snapshots
from snapline.engine.slot.checkpoints import key_of, snapshot_key
from snapline.ids import TaskId, first_checkpoint
from snapline.storage.api import Life
from snapline.storage.files.store import FileStore
from snapline.storage.memory import MemoryStore

TASK = TaskId("a b/0")  # names are encoded in files


@pytest.fixture(params=("memory", "files"))
def store(request, tmp_path):
    return MemoryStore() if request.param == "memory" else FileStore(tmp_path)


def stored(store, epoch, number, task=TASK):
    key = snapshot_key(Life(task, epoch, 1), first_checkpoint(epoch) + number)
    store.put(key, key.encode())
    return key


def test_what_past_epochs_left_is_deleted_but_for_what_is_needed(store):
    base, delta, abandoned = (stored(store, 1, number) for number in (1, 2, 3))
    other, present, later = (stored(store, epoch, 1) for epoch in (2, 3, 4))
    store.put("decision/1", b"")
    sweep_snapshots(store, 3, {base, delta})
    for key in (base, delta, present, later):
        assert store.get(key) == key.encode()
    assert store.get("decision/1") == b""
    assert sorted(store.folders("snapshot")) == [f"a b-0.e{epoch}.i1" for epoch in (1, 3, 4)]
    store.clear("snapshot/a b-0.e1.i1", ())
    assert "e1" not in "".join(store.folders("snapshot"))
    assert abandoned != other


def test_the_name_of_a_checkpoint_is_that_of_its_life(store):
    known = meta(TASK, first_checkpoint(1) + 1, epoch=1, incarnation=1)
    assert key_of(known) == stored(store, 1, 1)


def test_what_is_no_life_is_left_alone(store):
    store.put("snapshot/strange/1", b"1")
    sweep_snapshots(store, 9, ())
    assert store.get("snapshot/strange/1") == b"1"
