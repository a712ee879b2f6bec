"""Both forms of discards keep what was flushed, and nothing else."""

import numpy as np
import pytest

from discarded import records_of
from snapline.batch import Batch, Varlen
from snapline.dataflow.state.identity import identities_of
from snapline.errors import ObjectDamaged
from snapline.ids import ChannelId, TaskId
from snapline.storage.api import Life
from snapline.storage.discards.files import FileDiscardStore
from snapline.storage.discards.port import Discard, MemoryDiscardStore
from snapline.storage.files.frames import Appender

AB, AC = ChannelId("a/0>b/0"), ChannelId("a/0>c/1#left")


@pytest.fixture(params=["memory", "files"])
def store(request, tmp_path):
    if request.param == "memory":
        return MemoryDiscardStore()
    return FileDiscardStore(tmp_path / "discards")


def life(incarnation=1, task="a/0"):
    return Life(TaskId(task), 1, incarnation)


def found(store):
    return [
        (name, each.channel, each.seq, each.kind, each.identities.tolist())
        for name, each in store.read()
    ]


def test_what_was_flushed_comes_back_by_life_and_in_order(store):
    first, second = store.open(life()), store.open(life(2))
    first.append(Discard(AB, 7, "id", np.array([5, 1 << 40, -3])))
    second.append(Discard(AC, 1, "hash", np.arange(5_000)))
    first.append(Discard(AC, 1 << 40, "id", np.zeros(0, np.int64)))
    for each in (first, second):
        each.flush()
    assert found(store) == [
        ("a-0.e1.i1", AB, 7, "id", [5, 1 << 40, -3]),
        ("a-0.e1.i1", AC, 1 << 40, "id", []),
        ("a-0.e1.i2", AC, 1, "hash", list(range(5_000))),
    ]
    assert records_of(store.read()) == {AB: 3, AC: 5_000}


def test_what_was_not_flushed_goes_with_its_process(store):
    discards = store.open(life())
    discards.append(Discard(AB, 1, "id", np.array([1])))
    discards.flush()
    discards.append(Discard(AB, 2, "id", np.array([2])))
    discards.close()
    assert [row[2] for row in found(store)] == [1]


def test_a_run_that_discards_nothing_has_no_files(tmp_path):
    store = FileDiscardStore(tmp_path / "discards")
    store.open(life()).flush()
    assert found(store) == []
    assert not (tmp_path / "discards").exists()


def test_a_torn_end_is_left_out_and_nonsense_is_damage(tmp_path):
    store = FileDiscardStore(tmp_path)
    discards = store.open(life())
    for seq in (1, 2):
        discards.append(Discard(AB, seq, "id", np.array([seq])))
    discards.flush()
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    assert [row[2] for row in found(store)] == [1]
    other = Appender(tmp_path / "x.discards")
    other.append(b"no message")
    other.flush()
    with pytest.raises(ObjectDamaged, match="tells of no message"):
        found(store)


def test_records_are_known_by_their_id_or_else_by_all_that_they_are():
    rows = Batch({"id": np.array([3, 4]), "name": Varlen.of("str", ["x", "y"])})
    known, ids = identities_of(rows)
    assert (known, ids.tolist()) == (True, [3, 4])
    bare = Batch({"b": np.array([1, 1, 2]), "a": Varlen.of("str", ["x", "y", "x"])})
    turned = Batch({"a": bare["a"], "b": bare["b"]})
    known, hashes = identities_of(bare)
    assert not known
    assert hashes.tolist() == identities_of(turned)[1].tolist()
    assert len(set(hashes.tolist())) == 3
    assert identities_of(Batch({}, 2))[1].tolist() == [0, 0]
