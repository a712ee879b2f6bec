"""Stored input is read beside the loop: whoever asks is woken, and then waits for nothing."""

import threading
from collections import deque

import pytest

from snapline.batch import Batch
from snapline.engine.shell import NextRead
from snapline.errors import ObjectDamaged
from snapline.runtime.slot.read_ahead import ReadAhead
from snapline.storage.blocks import BLOCKS_KEPT, BlockIngress, StoredBlock
from snapline.storage.list_ingress import ListIngress

WAIT_S = 120
BLOCK, BLOCKS = 10, 8
LOOP = threading.current_thread()


class SlowInput(BlockIngress):
    """Eight blocks of ten records, one due each millisecond; each load waits for a permit."""

    def __init__(self):
        self.batches = [
            Batch.of(time=list(range(n * BLOCK, (n + 1) * BLOCK))) for n in range(BLOCKS)
        ]
        self.permits, self.damaged = threading.Semaphore(0), False
        self.loaded = []  # the blocks, with whether the loop itself has waited for them
        super().__init__({"time": "int64"}, [[StoredBlock.of(batch) for batch in self.batches]])

    def load(self, partition, block):
        in_loop = threading.current_thread() is LOOP
        self.loaded.append((block, in_loop))
        if not in_loop:
            assert self.permits.acquire(timeout=WAIT_S)
        if self.damaged:
            raise ObjectDamaged(f"block {block} is damaged")
        return self.batches[block]


class Source:
    """Reads an input as a source does, in the loop of this test."""

    def __init__(self, ingress, read_ahead):
        self.ingress, self.read_ahead = ingress, read_ahead
        self.offset, self.woken = 0, 0

    def wake(self):
        self.woken += 1

    def at_hand(self, records, now_ms=BLOCK * BLOCKS):
        wanted = NextRead(self.ingress, {0: self.offset}, records, now_ms)
        return self.read_ahead.at_hand(self.wake, wanted)

    def read(self, records, now_ms):
        stop = min(self.ingress.due_through(0, now_ms), self.offset + records)
        batch = self.ingress.read(0, self.offset, stop)
        self.offset = stop
        self.ingress.watermark(0, stop)
        if stop < self.ingress.end(0):
            self.ingress.due_ms(0, stop)
        return batch["time"].tolist()


@pytest.fixture
def loop():
    return Loop()


class Loop:
    def __init__(self):
        self.actions, self.posted = deque(), threading.Semaphore(0)

    def post(self, action):
        self.actions.append(action)
        self.posted.release()

    def run(self, count):
        for _ in range(count):
            assert self.posted.acquire(timeout=WAIT_S), "nothing was posted"
            self.actions.popleft()()


@pytest.fixture
def read_ahead(loop):
    made = ReadAhead(loop.post)
    yield made
    made.close()


@pytest.fixture
def slow():
    made = SlowInput()
    yield made
    made.permits.release(100)


def test_input_in_memory_is_always_at_hand(read_ahead):
    source = Source(ListIngress([[Batch.of(time=[1, 2, 3])]]), read_ahead)
    assert source.at_hand(2)
    assert (source.read(2, 5), source.woken) == ([1, 2], 0)


def test_a_source_that_would_wait_sleeps_and_is_woken_and_reads_without_waiting(
    slow, read_ahead, loop
):
    source = Source(slow, read_ahead)
    assert not source.at_hand(4, now_ms=5)
    assert source.woken == 0
    slow.permits.release(2)  # the first block, and the next one ahead of it
    loop.run(2)
    assert source.woken == 1
    assert source.at_hand(4, now_ms=5)
    assert source.read(4, 5) == [0, 1, 2, 3]
    assert sorted(slow.loaded) == [(0, False), (1, False)]


def test_all_of_it_is_read_in_order_and_never_by_the_loop(slow, read_ahead, loop):
    slow.permits.release(100)
    source, read = Source(slow, read_ahead), []
    for now_ms in range(3, 200, 3):
        while not source.at_hand(7, now_ms):
            loop.run(1)
        read += source.read(7, now_ms)
    assert read == list(range(BLOCK * BLOCKS))
    assert sorted(slow.loaded) == [(block, False) for block in range(BLOCKS)]


def test_no_more_than_a_few_blocks_are_kept_and_a_source_that_went_back_reads_the_same(
    slow, read_ahead, loop
):
    slow.permits.release(100)
    source = Source(slow, read_ahead)
    for offset in (65, 0, 38, 72, 0):  # as after rollbacks
        source.offset = offset
        while not source.at_hand(8):
            loop.run(1)
        assert source.read(8, 1_000) == list(range(offset, min(offset + 8, 80)))
        assert len(slow._loaded) <= BLOCKS_KEPT
    assert not [block for block, in_loop in slow.loaded if in_loop]


def test_what_cannot_be_read_is_raised_where_the_source_reads(slow, read_ahead, loop):
    source = Source(slow, read_ahead)
    slow.damaged = True
    assert not source.at_hand(4, now_ms=5)
    slow.permits.release(2)
    loop.run(2)
    assert source.woken == 1
    assert source.at_hand(4, now_ms=5)
    with pytest.raises(ObjectDamaged, match="block 0 is damaged"):
        source.read(4, 5)
    slow.damaged = False
    slow.permits.release(100)
    while not source.at_hand(4, now_ms=5):
        loop.run(1)
    assert source.read(4, 5) == [0, 1, 2, 3]


def test_two_sources_that_share_an_input_are_both_woken(slow, read_ahead, loop):
    sources = [Source(slow, read_ahead) for _ in range(2)]
    assert not any(source.at_hand(4, now_ms=5) for source in sources)
    slow.permits.release(2)
    loop.run(2)
    assert [source.woken for source in sources] == [1, 1]
    assert all(source.at_hand(4, now_ms=5) for source in sources)
