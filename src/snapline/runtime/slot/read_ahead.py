"""Reads stored input beside the loop of a slot: the disk is slow, and the loop has messages to take.

A source that asks for records which are not in memory sleeps until a thread has fetched their blocks; its
slot goes on with everything else. While a source works through a block, the next one is fetched, so that it
rarely has to sleep. The ingress bounds how much is kept: a few blocks of each partition.

A block that could not be fetched is left to the source: it reads for itself next time, in the loop, and
what that raises is raised where errors of an input always are.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

from snapline.engine.shell import NextRead
from snapline.storage.api import Prefetched

_Block: TypeAlias = tuple[int, int]  # partition, number


class ReadAhead:
    """The threads that read input for one slot. `post` brings an action into its loop."""

    def __init__(self, post: Callable[[Callable[[], None]], None]) -> None:
        self._post = post
        self._threads = ThreadPoolExecutor(2, "snapline-input")
        self._inputs: dict[int, _Input | None] = {}  #: by their id; None: nothing to fetch

    def at_hand(self, wake: Callable[[], None], wanted: NextRead) -> bool:
        """Whether all that is wanted is in memory; if not, `wake` is called when it may be."""
        ingress = wanted.ingress
        if id(ingress) not in self._inputs:
            known = _Input(ingress, self) if isinstance(ingress, Prefetched) else None
            self._inputs[id(ingress)] = known
        known = self._inputs[id(ingress)]
        return known is None or known.at_hand(wake, wanted)

    def submit(self, act: Callable[[], Callable[[], None]]) -> None:
        """Do something in a thread, and then in the loop what it returns."""
        self._threads.submit(lambda: self._post(act()))

    def close(self) -> None:
        """Wait for what has begun; what has not is dropped."""
        self._threads.shutdown(wait=True, cancel_futures=True)


class _Input:
    """One input, and the blocks of it that are being fetched."""

    def __init__(self, ingress: Prefetched, threads: ReadAhead) -> None:
        self._ingress = ingress
        self._threads = threads
        self._fetching: set[_Block] = set()
        self._asleep: list[Callable[[], None]] = []  #: wakes the sources that wait for a block
        self._failed = False  #: whether a block failed for which a source was asleep

    def at_hand(self, wake: Callable[[], None], wanted: NextRead) -> bool:
        if self._failed:
            self._failed = False
            return True
        missing = False
        for partition, offset in wanted.offsets.items():
            stop = offset + wanted.records
            for block in self._ingress.needed(partition, offset, stop, wanted.now_ms):
                missing = True
                self._fetch((partition, block))
            following = self._ingress.next_block(partition, stop)
            if following is not None:
                self._fetch((partition, following))
        if missing:
            self._asleep.append(wake)
        return not missing

    def _fetch(self, block: _Block) -> None:
        if block in self._fetching:
            return
        self._fetching.add(block)

        def work() -> Callable[[], None]:
            try:
                loaded = self._ingress.fetch(*block)
            except BaseException:  # whatever it is, the source meets it when it reads for itself
                return lambda: self._fetched(block, None)
            return lambda: self._fetched(block, loaded)

        self._threads.submit(work)

    def _fetched(self, block: _Block, loaded: Any) -> None:
        self._fetching.remove(block)
        if loaded is not None:
            self._ingress.keep(*block, loaded)
        asleep, self._asleep = self._asleep, []
        if asleep:
            self._failed = loaded is None
        for wake in asleep:
            wake()
