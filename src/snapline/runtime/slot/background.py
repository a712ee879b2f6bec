"""What a slot asks of storage, done beside its loop: the disk is slow, and the loop has messages to take.

Two threads store and wait for fsync. Two others load: a slot that is to restore does not wait for what it
wrote before. Two more read input ahead of the sources (`read_ahead`). Every answer goes to the engine in
the loop. A file has at most one sync under way. What is asked meanwhile waits, and the next sync answers
all of it at once: under load many checkpoints share one fsync.

An object that could not be stored can be stored again. A file to which something could not be written, on a
full disk, say, is lost for good: nobody knows what stands in it. Then the process ends with that error, and
the next life of the slot has files of its own.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Protocol, TypeAlias, TypeVar

from snapline.engine.shell import NextRead, SourceAlarm, Ticket
from snapline.errors import ObjectDamaged, ObjectMissing, StorageError
from snapline.runtime.slot.read_ahead import ReadAhead
from snapline.storage.api import Egress, MessageLog, PendingSync, Store
from snapline.storage.codec import Pieces, plain_snapshot

_T = TypeVar("_T")
_File: TypeAlias = MessageLog | Egress


class StorageAsker(Protocol):
    """Receives the answers: the engine of a slot."""

    def done(self, ticket: Ticket) -> None:
        """A call to storage has succeeded."""
        ...

    def failed(self, ticket: Ticket) -> None:
        """A call to storage has failed."""
        ...

    def fetched(self, ticket: Ticket, data: bytes | None) -> None:
        """An object was loaded; None if it is damaged or missing."""
        ...

    def alarm(self, alarm: SourceAlarm) -> None:
        """Input of a source may be at hand."""
        ...


class Background:
    """Calls storage in threads. `post` brings an action into the loop, from any thread."""

    def __init__(self, store: Store, post: Callable[[Callable[[], None]], None]) -> None:
        self._store = store
        self._post = post
        self._threads = ThreadPoolExecutor(2, "snapline-store")
        self._readers = ThreadPoolExecutor(2, "snapline-fetch")
        self._input = ReadAhead(post)
        self._storing: set[str] = set()  #: objects that are being stored
        self._unwanted: set[str] = (
            set()
        )  #: those of them that are to be deleted as soon as they are
        #: files whose sync is under way, and who waits for the next one
        self._syncing: dict[_File, list[tuple[StorageAsker, Ticket]]] = {}
        self.log_syncs = 0  #: how many syncs of logs were begun

    def store(
        self, asker: StorageAsker, ticket: Ticket, key: str, data: Callable[[], Pieces]
    ) -> None:
        """Make an object and store it."""

        def answer(tell: Callable[[Ticket], None]) -> None:
            self._storing.remove(key)
            if key in self._unwanted:
                self._unwanted.remove(key)
                self.delete(key)
            tell(ticket)

        self._storing.add(key)
        self._do(
            lambda: self._store.put(key, data()),
            lambda _: answer(asker.done),
            lambda _: answer(asker.failed),
        )

    def fetch(self, asker: StorageAsker, ticket: Ticket, key: str, digest: str) -> None:
        """Load a snapshot, and unpack it if it is compressed, which takes long."""

        def load() -> bytes | None:
            try:
                return plain_snapshot(self._store.get(key, digest))
            except (ObjectDamaged, ObjectMissing):
                return None

        self._do(
            load, partial(asker.fetched, ticket), lambda _: asker.failed(ticket), self._readers
        )

    def at_hand(self, asker: StorageAsker, alarm: SourceAlarm, wanted: NextRead) -> bool:
        """Whether input is in memory; if not, it is fetched, and the alarm goes off when it may be."""
        return self._input.at_hand(lambda: asker.alarm(alarm), wanted)

    def delete(self, key: str) -> None:
        """Delete an object; if it cannot be done, it stays as garbage."""
        if key in self._storing:
            self._unwanted.add(key)  # it is not there yet: deleted now, it would stay for ever
            return

        def delete() -> None:
            with suppress(StorageError):
                self._store.delete(key)

        self._do(delete, lambda _: None, _raise)

    def sync(self, asker: StorageAsker, ticket: Ticket, file: _File) -> None:
        """Make everything that was appended to a file durable; if it cannot be, the process ends."""
        if file in self._syncing:
            self._syncing[file].append((asker, ticket))
        else:
            self._start_sync(file, [(asker, ticket)])

    def _start_sync(self, file: _File, asked: list[tuple[StorageAsker, Ticket]]) -> None:
        self._syncing[file] = []
        self.log_syncs += asked[0][1].kind == "log"
        sync = file.start_sync()
        self._do(sync.wait, lambda _: self._finish(file, sync, asked), _raise)

    def _finish(
        self, file: _File, sync: PendingSync, asked: list[tuple[StorageAsker, Ticket]]
    ) -> None:
        sync.finish()
        waiting = self._syncing.pop(file)
        if waiting:
            self._start_sync(file, waiting)
        for asker, ticket in asked:
            asker.done(ticket)

    def _do(
        self,
        act: Callable[[], _T],
        done: Callable[[_T], None],
        failed: Callable[[StorageError], None],
        threads: ThreadPoolExecutor | None = None,
    ) -> None:
        def work() -> None:
            try:
                result = act()
            except StorageError as error:
                self._post(partial(failed, error))
            except BaseException as error:  # a defect: it ends the process, not only this thread
                self._post(partial(_raise, error))
            else:
                self._post(lambda: done(result))

        (threads or self._threads).submit(work)

    def close(self) -> None:
        """Wait for what has begun; what has not is dropped."""
        for threads in (self._threads, self._readers):
            threads.shutdown(wait=True, cancel_futures=True)
        self._input.close()


def _raise(error: BaseException) -> None:
    raise error
