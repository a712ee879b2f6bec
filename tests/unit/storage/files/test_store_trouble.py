"""A store that is made slow, or made to fail: for all who use it, for a time, and no longer."""

import time

import pytest

from snapline.errors import StoreUnavailable
from snapline.storage.files.store import FileStore
from snapline.storage.files.trouble import Trouble, TroubledStore

LONG_MS = 60_000


@pytest.fixture
def trouble(tmp_path):
    return Trouble(tmp_path / "store.trouble")


@pytest.fixture
def store(tmp_path, trouble):
    made = TroubledStore(FileStore(tmp_path / "store"), trouble)
    made.put("there", b"1")
    return made


def calls(store):
    return (
        lambda: store.get("there"),
        lambda: store.put("new", b"2"),
        lambda: store.put_if_absent("newer", b"3"),
        lambda: store.delete("nothing"),
    )


def took(call):
    begun = time.monotonic()
    call()
    return time.monotonic() - begun


def test_every_call_to_a_slow_store_takes_that_much_longer(store, trouble):
    trouble.slow(60, LONG_MS)
    assert all(took(call) >= 0.06 for call in calls(store))
    trouble.end()
    assert trouble.now() == (0.0, 0.0)
    for call in calls(store):
        call()


def test_trouble_ends_by_itself(store, trouble):
    trouble.slow(500, 30)
    trouble.fail(100, 30)
    time.sleep(0.05)
    assert trouble.now() == (0.0, 0.0)
    for call in calls(store):
        call()


def test_a_call_to_a_failing_store_fails_and_may_have_happened_all_the_same(store, trouble):
    trouble.fail(100, LONG_MS)
    for number in range(40):
        with pytest.raises(StoreUnavailable, match="made to fail"):
            store.put(f"object/{number}", b"x")
    for call in calls(store):
        with pytest.raises(StoreUnavailable):
            call()
    trouble.end()
    there = [number for number in range(40) if store.put_if_absent(f"object/{number}", b"x")]
    assert 0 < len(there) < 40, "some were stored, and some were not"


def test_it_fails_about_as_often_as_was_said(store, trouble):
    trouble.fail(30, LONG_MS)
    failed = 0
    for _ in range(400):
        try:
            store.get("there")
        except StoreUnavailable:
            failed += 1
    assert 70 < failed < 180


def test_it_can_be_slow_and_fail_at_once_and_one_does_not_end_the_other(store, trouble):
    trouble.slow(20, LONG_MS)
    trouble.fail(100, LONG_MS)
    begun = time.monotonic()
    with pytest.raises(StoreUnavailable):
        store.get("there")
    assert time.monotonic() - begun >= 0.02
    assert Trouble(trouble._path).now() == (0.02, 1.0), "whoever looks sees both"


def test_ending_what_never_began_is_no_error(trouble):
    trouble.end()
    assert trouble.now() == (0.0, 0.0)
