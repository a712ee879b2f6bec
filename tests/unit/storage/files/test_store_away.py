"""A store whose directory is somebody else's to make: without it the store is away, and not empty."""

import pytest

from snapline.errors import ObjectMissing, StoreUnavailable
from snapline.storage.files.store import FileStore


def test_while_its_directory_is_away_no_call_succeeds_and_none_makes_it_anew(tmp_path):
    directory = tmp_path / "store"
    directory.mkdir()
    store = FileStore(directory, must_exist=True)
    store.put("a/b", b"1")
    directory.rename(tmp_path / "away")
    for call in (
        lambda: store.get("a/b"),
        lambda: store.get("never/put"),
        lambda: store.put("a/c", b"2"),
        lambda: store.put_if_absent("a/b", b"2"),
        lambda: store.put("d", b"2"),
    ):
        with pytest.raises(StoreUnavailable):
            call()
    assert not directory.exists()
    (tmp_path / "away").rename(directory)
    assert store.get("a/b") == b"1"
    with pytest.raises(ObjectMissing):
        store.get("never/put")
    assert store.put_if_absent("a/c", b"2")
