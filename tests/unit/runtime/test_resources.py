"""What a process says of what it uses."""

import time

import pytest

from snapline.errors import ObjectMissing
from snapline.metrics.second import Usage
from snapline.runtime.counted_store import CountedStore, Requests
from snapline.runtime.resources import Resources, peak_bytes
from snapline.storage.codec import Pieces
from snapline.storage.memory import MemoryStore


class Made:
    """An input that took so long to make."""

    def __init__(self, ns):
        self.generated_ns = ns


def burn(ms):
    """Compute for so long, whatever else this machine does."""
    until_ns = time.process_time_ns() + ms * 1_000_000
    while time.process_time_ns() < until_ns:
        pass


def test_nothing_is_told_within_a_second_unless_it_is_the_last_time(monkeypatch):
    now_s = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    told = Resources(CountedStore(MemoryStore()))
    now_s[0] = 100.9
    assert told.since([]) is None
    now_s[0] = 101.0
    assert told.since([]) is not None
    assert told.since([]) is None
    assert told.since([], last=True) is not None


def test_cpu_time_is_that_since_the_last_time():
    began_ns = time.process_time_ns()
    told = Resources(CountedStore(MemoryStore()))
    burn(30)
    first = told.since([], last=True).cpu_us
    burn(30)
    again = told.since([], last=True).cpu_us
    assert min(first, again) >= 30_000
    assert first + again <= (time.process_time_ns() - began_ns) // 1000


def test_requests_syncs_and_generated_input_are_told_once():
    store, syncs, made = CountedStore(MemoryStore()), [0], Made(5_000_000)
    told = Resources(store, lambda: syncs[0])
    store.put("a/1", b"12345")
    store.put_if_absent("a/2", b"123")
    store.get("a/1")
    syncs[0] = 2
    first = told.since([made, made, None], last=True)
    assert first.usage == Usage(5_000, puts=2, put_bytes=8, gets=1, get_bytes=5, log_syncs=2)
    made.generated_ns += 1_000_000
    store.delete("a/1")
    assert told.since([], last=True).usage == Usage(deletes=1)
    assert told.since([made], last=True).usage == Usage(1_000)
    assert told.since([made], last=True).usage == Usage()


def test_a_store_counts_what_it_is_asked_for_also_in_vain():
    store = CountedStore(MemoryStore())
    store.put("a/1", Pieces([b"12", b"345"]))
    assert not store.put_if_absent("a/1", b"1")
    with pytest.raises(ObjectMissing):
        store.get("b")
    store.folders("a")
    store.clear("a", [])
    store.delete("a/1")
    assert store.asked == Requests(puts=2, put_bytes=6, gets=1, deletes=1, lists=2)


def test_the_most_memory_is_at_least_what_is_taken_now():
    block = b"x" * 30_000_000
    assert peak_bytes() >= len(block)
