"""Storage beside the loop: the loop is never held up, and nothing is called done that is not durable."""

import threading
from collections import deque

import pytest

from snapline.engine.shell import Ticket
from snapline.errors import ObjectMissing, StorageError, StoreUnavailable
from snapline.ids import TaskId
from snapline.runtime.slot.background import Background
from snapline.storage import codec, packing
from snapline.storage.memory import MemoryStore

WAIT_S = 120


def ticket(number, kind="log"):
    return Ticket(kind, 1, TaskId("a/0"), number)


class Loop:
    """What is posted, and who is told what; a test runs it in its own thread."""

    def __init__(self):
        self.actions = deque()
        self.posted = threading.Semaphore(0)
        self.told = []

    def post(self, action):
        self.actions.append(action)
        self.posted.release()

    def run(self, count=1):
        """Run so many actions, as soon as they are there; what the engine was told by then."""
        for _ in range(count):
            assert self.posted.acquire(timeout=WAIT_S), "nothing was posted"
            self.actions.popleft()()
        told, self.told = self.told, []
        return told

    # The engine.

    def done(self, ticket):
        self.told.append(("done", ticket.number))

    def failed(self, ticket):
        self.told.append(("failed", ticket.number))

    def fetched(self, ticket, data):
        self.told.append(("fetched", ticket.number, data))


class SlowFile:
    """A file whose disk works when it is told to; `sizes` are those of the syncs that were finished."""

    def __init__(self):
        self.size = 0
        self.sizes = []
        self.started = 0
        self.disk = threading.Semaphore(0)
        self.breaks_in = None

    def start_sync(self):
        self.break_in("start_sync")
        self.started += 1
        return SlowSync(self)

    def break_in(self, part):
        if self.breaks_in == part:
            raise StoreUnavailable("no space")


class SlowSync:
    def __init__(self, file):
        self.file, self.size = file, file.size

    def wait(self):
        assert self.file.disk.acquire(timeout=WAIT_S)
        self.file.break_in("wait")

    def finish(self):
        self.file.break_in("finish")
        self.file.sizes.append(self.size)


@pytest.fixture
def loop():
    return Loop()


@pytest.fixture
def background(loop):
    background = Background(MemoryStore(), loop.post)
    yield background
    background.close()


def sync_and_run(loop, background, file):
    background.sync(loop, ticket(1), file)
    loop.run()


def test_a_sync_is_answered_when_the_disk_is_ready_and_not_before(loop, background):
    file = SlowFile()
    background.sync(loop, ticket(1), file)
    assert not loop.actions
    file.disk.release()
    assert loop.run() == [("done", 1)]
    assert file.sizes == [0]


def test_what_is_asked_during_a_sync_shares_the_next_one(loop, background):
    file = SlowFile()
    background.sync(loop, ticket(1), file)
    for number in (2, 3):
        file.size += 10
        background.sync(loop, ticket(number), file)
    file.size += 10
    file.disk.release(2)
    assert loop.run() == [("done", 1)]
    assert loop.run() == [("done", 2), ("done", 3)]
    assert (file.sizes, file.started) == ([0, 30], 2)


def test_files_do_not_wait_for_each_other(loop, background):
    slow, fast = SlowFile(), SlowFile()
    background.sync(loop, ticket(1), slow)
    background.sync(loop, ticket(2), fast)
    fast.disk.release()
    assert loop.run() == [("done", 2)]
    slow.disk.release()
    assert loop.run() == [("done", 1)]


def test_what_is_loaded_does_not_wait_for_what_is_written(loop, background):
    slow = [SlowFile(), SlowFile(), SlowFile()]
    for number, file in enumerate(slow):
        background.sync(loop, ticket(number), file)
    background.fetch(loop, ticket(9), "nothing", None)
    assert loop.run() == [("fetched", 9, None)]
    for file in slow:
        file.disk.release()
    assert sorted(loop.run(3)) == [("done", 0), ("done", 1), ("done", 2)]


@pytest.mark.parametrize("part", ["start_sync", "wait", "finish"])
def test_a_sync_that_fails_anywhere_ends_the_process_with_its_reason(loop, background, part):
    file = SlowFile()
    file.disk.release()
    file.breaks_in = part
    with pytest.raises(StoreUnavailable, match="no space"):
        sync_and_run(loop, background, file)
    assert (file.sizes, loop.told) == ([], [])


def test_an_object_is_made_in_another_thread(loop, background):
    threads = []

    def make():
        threads.append(threading.current_thread())
        return b"state"

    background.store(loop, ticket(1), "key", make)
    assert loop.run() == [("done", 1)]
    assert threads != [threading.current_thread()]
    background.fetch(loop, ticket(2), "key", None)
    background.fetch(loop, ticket(3), "other", None)
    assert sorted(loop.run(2)) == [("fetched", 2, b"state"), ("fetched", 3, None)]


def test_a_compressed_snapshot_is_unpacked_in_another_thread(loop, background, monkeypatch):
    threads = []
    unpack = packing.unpack

    def note(*given):
        threads.append(threading.current_thread())
        return unpack(*given)

    monkeypatch.setattr(codec, "unpack", note)
    made = codec.encode_snapshot(True, {}, bytes(5_000), (), compress=True)
    background.store(loop, ticket(1), "key", lambda: made)
    loop.run()
    background.fetch(loop, ticket(2), "key", made.digest)
    [(_, _, data)] = loop.run()
    assert codec.decode_snapshot(data).memo == bytes(5_000)
    assert len(threads) == 1
    assert threads != [threading.current_thread()]
    other = codec.Pieces([b"SNZ1", b"no block"])
    background.store(loop, ticket(3), "damaged", lambda: other)
    loop.run()
    background.fetch(loop, ticket(4), "damaged", other.digest)
    assert loop.run() == [("fetched", 4, None)]


def test_a_store_that_is_away_is_told_and_nothing_else_is(loop, background, monkeypatch):
    def away(*_):
        raise StorageError("away")

    for method in ("put", "get", "delete"):
        monkeypatch.setattr(MemoryStore, method, away)
    background.store(loop, ticket(1), "key", lambda: b"")
    background.fetch(loop, ticket(2), "key", "digest")
    background.delete("key")
    assert sorted(loop.run(3)) == [("failed", 1), ("failed", 2)]


def test_an_object_that_is_deleted_while_it_is_stored_does_not_stay(loop):
    store, going = MemoryStore(), threading.Semaphore(0)
    background = Background(store, loop.post)

    def slowly():
        assert going.acquire(timeout=WAIT_S)
        return b"state"

    background.store(loop, ticket(1), "key", slowly)
    background.delete("key")
    going.release()
    loop.run(2)  # stored, deleted
    background.close()
    with pytest.raises(ObjectMissing):
        store.get("key")


def test_a_defect_in_a_thread_ends_the_loop_and_does_not_pass_for_silence(loop, background):
    background.store(loop, ticket(1), "key", lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        loop.run()
    assert loop.told == []
