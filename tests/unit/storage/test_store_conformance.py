"""What every store promises."""

import pytest

from snapline.errors import ObjectDamaged, ObjectMissing, StorageError, StoreUnavailable
from snapline.storage.files.places import make_draft
from snapline.storage.files.store import FileStore
from snapline.storage.memory import MemoryStore
from storage_harness import race


def test_what_was_put_is_got_with_its_digest(store):
    digest = store.put("snapshots/count-1/7", b"state")
    assert store.get("snapshots/count-1/7") == store.get("snapshots/count-1/7", digest) == b"state"


def test_an_empty_object_is_an_object(store):
    assert store.get("a", store.put("a", b"")) == b""


def test_names_that_begin_with_other_names_do_not_clash(store):
    for key in ("a", "a/b", "a/b/c", "a.b", "count/1>out/0#in", "weird %2F"):
        store.put(key, key.encode())
        assert store.get(key) == key.encode()


def test_what_was_never_put_is_missing(store):
    store.put("a", b"1")
    for key in ("b", "a/b"):
        with pytest.raises(ObjectMissing, match=key):
            store.get(key)


def test_an_object_that_is_put_twice_is_stored_once(store):
    assert store.put("a", b"1") == store.put("a", b"1")


def test_an_object_never_changes(store):
    store.put("a", b"1")
    with pytest.raises(StorageError, match="other content"):
        store.put("a", b"2")
    assert store.get("a") == b"1"


def test_only_the_first_put_if_absent_wins(store):
    assert store.put_if_absent("epoch/1", b"first")
    assert not store.put_if_absent("epoch/1", b"second")
    assert not store.put_if_absent("epoch/1", b"first")
    assert store.get("epoch/1") == b"first"


def test_another_digest_is_damage(store):
    digest = store.put("a", b"1")
    other = store.put("b", b"2")
    with pytest.raises(ObjectDamaged):
        store.get("a", other)
    assert store.get("a", digest) == b"1"


@pytest.mark.parametrize("data", [b"some bytes", b"1", b""])
def test_damage_is_found_with_and_without_the_digest(store, data):
    digest = store.put("a", data)
    store.damage("a")
    for known in (digest, None):
        with pytest.raises(ObjectDamaged, match="a"):
            store.get("a", known)


def test_what_was_deleted_is_missing_and_may_be_deleted_again(store):
    store.put("a", b"1")
    store.delete("a")
    store.delete("a")
    with pytest.raises(ObjectMissing):
        store.get("a")
    assert store.put_if_absent("a", b"2")


def test_a_folder_is_cleared_but_for_what_is_kept(store):
    for key in ("s/a.e1.i1/1", "s/a.e1.i1/2", "s/b.e2.i1/1", "s/x y>0/1", "s2/a/1", "other"):
        store.put(key, b"1")
    assert sorted(store.folders("s")) == ["a.e1.i1", "b.e2.i1", "x y>0"]
    assert store.folders("nothing") == []
    store.clear("s/a.e1.i1", {"s/a.e1.i1/2", "s/b.e2.i1/1"})
    store.clear("s/x y>0", ())
    store.clear("s/nothing", ())
    with pytest.raises(ObjectMissing):
        store.get("s/a.e1.i1/1")
    for key in ("s/a.e1.i1/2", "s/b.e2.i1/1", "s2/a/1", "other"):
        assert store.get(key) == b"1"
    assert sorted(store.folders("s")) == ["a.e1.i1", "b.e2.i1"]


def test_clearing_removes_what_killed_writers_left_and_empty_folders(tmp_path):
    store = FileStore(tmp_path)
    store.put("s/a/1", b"1")
    make_draft(tmp_path / "s" / "a" / "2.obj")
    store.clear("s/a", {"s/a/1"})
    assert [path.name for path in (tmp_path / "s" / "a").iterdir()] == ["1.obj"]
    store.clear("s/a", ())
    assert list((tmp_path / "s").iterdir()) == []


def test_a_store_that_is_away_is_not_empty(tmp_path):
    away = FileStore(tmp_path / "away", must_exist=True)
    with pytest.raises(StoreUnavailable):
        away.folders("s")
    with pytest.raises(StoreUnavailable):
        away.clear("s/a", ())


def test_the_memory_form_can_say_what_it_holds():
    store = MemoryStore()
    store.put("a", b"123")
    store.put("b", b"4")
    store.delete("a")
    assert (store.keys(), store.nbytes) == (("b",), 1)


def test_another_process_finds_what_was_stored(tmp_path):
    digest = FileStore(tmp_path).put("a/b", b"1")
    assert FileStore(tmp_path).get("a/b", digest) == b"1"


@pytest.mark.parametrize(
    "key", ["", "/a", "a//b", "a/", "../a", "a/../b", ".", "a.obj/b", ".new-1"]
)
def test_names_that_could_leave_the_directory_are_refused(tmp_path, key):
    with pytest.raises(StorageError, match="no name for an object"):
        FileStore(tmp_path).put(key, b"1")


@pytest.mark.parametrize("size", range(21))
def test_a_file_cut_anywhere_is_damaged(tmp_path, size):
    FileStore(tmp_path).put("a", b"state")
    path = tmp_path / "a.obj"
    assert path.stat().st_size == 21
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ObjectDamaged):
        FileStore(tmp_path).get("a")


def test_nothing_temporary_is_left_behind(tmp_path):
    store = FileStore(tmp_path)
    for data in (b"1", b"2"):
        store.put_if_absent("a", data)
    assert [path.name for path in tmp_path.iterdir()] == ["a.obj"]


def test_a_place_that_is_no_directory_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot store a in"):
        FileStore(tmp_path / "file").put("a", b"1")


def _claim(racer, directory):
    store = FileStore(directory)
    return [store.put_if_absent(f"epoch/{n}", b"%d" % racer) for n in range(30)]


def test_of_racing_processes_exactly_one_wins(tmp_path):
    answers = race(_claim, tmp_path)
    store = FileStore(tmp_path)
    for n, claims in enumerate(zip(*answers, strict=True)):
        assert sum(claims) == 1
        assert int(store.get(f"epoch/{n}")) == claims.index(True)
