"""What the coordinator writes down, done beside its loop: decisions, and manifests of public output.

One thread writes, in the order in which it was asked: a decision is durable before the manifest that
follows from it. A call that fails is made again by whoever asked; meanwhile the user is told why the job
waits. That is for a store that does not answer. Where it answers that something is damaged, or has been
gone for a while, waiting does not help, and the run is given up.

Everything here is fenced by the ledger. A decision is a conditional write, and one more look at whether its
number was collected (`engine/coordinator/anchor.py`). A manifest is published, and
an object deleted, only after a decision that this coordinator has won, and by what that decision says; so
both stay right even if another coordinator takes over before the thread comes to them: whoever
publishes a manifest of the ledger writes the same, and the name of an object that was garbage is
never used again.
"""

import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Protocol

from snapline.engine.coordinator.ledger import win
from snapline.engine.coordinator.sweep import sweep_snapshots
from snapline.engine.shell import Ticket
from snapline.errors import ObjectDamaged, ObjectMissing, StorageError, StoreUnavailable
from snapline.ids import Epoch, TaskId
from snapline.runtime.counted_store import CountedStore
from snapline.storage.api import Extent, Storage

COMPLAINT_SECONDS = 10.0
"""The least time between two complaints about a store that fails."""

SIGHT_SECONDS = 5.0
"""For how long an object may be missing: what another machine wrote may come into sight late."""


class DecisionAsker(Protocol):
    """Receives the answers: the engine's coordinator."""

    def done(self, ticket: Ticket) -> None:
        """What was asked for is durable."""
        ...

    def failed(self, ticket: Ticket) -> None:
        """What was asked for may not be durable; ask again."""
        ...

    def conflict(self, ticket: Ticket, found: bytes) -> None:
        """Another coordinator has written something else under this number."""
        ...


class Decisions:
    """Writes for one coordinator, in a thread. `post` brings an action into its loop."""

    def __init__(
        self,
        storage: Storage,
        post: Callable[[Callable[[], None]], None],
        complain: Callable[[str], None],
        give_up: Callable[[StorageError], None],
    ) -> None:
        self.store = CountedStore(storage.store)  #: tells what it was asked for
        self._outlet = storage.outlet
        self._post = post
        self._complain = complain
        self._give_up = give_up
        self._missing_since_s: dict[Ticket, float] = {}
        self._quiet_until_s = 0.0
        self._thread = ThreadPoolExecutor(1, "snapline-decisions")
        self._sweeper = ThreadPoolExecutor(1, "snapline-sweep")  #: no decision waits for a sweep
        self._closed = False

    def decide(self, asker: DecisionAsker, ticket: Ticket, data: bytes) -> None:
        """Store a decision, unless its number is taken, or was collected."""

        def work() -> None:
            found = win(self.store, ticket.number, data)
            if found == data:
                self._post(lambda: asker.done(ticket))
            else:
                self._post(lambda: asker.conflict(ticket, found))

        self._do(work, asker, ticket)

    def publish(
        self,
        asker: DecisionAsker,
        ticket: Ticket,
        number: int,
        extents: Mapping[TaskId, Extent],
        published: Callable[[], None],
    ) -> None:
        """Publish a manifest; when it is public, call `published` and then the asker."""

        def tell() -> None:
            published()
            asker.done(ticket)

        def work() -> None:
            if not self._outlet.publish(number, extents):
                # It follows from the ledger, so no other driver would have published anything else.
                raise ObjectDamaged(
                    f"manifest {number} is public with other rows than were decided"
                )
            self._post(tell)

        self._do(work, asker, ticket)

    def delete(self, key: str) -> None:
        """Delete an object; if it cannot be done, it stays as garbage."""

        def work() -> None:
            with suppress(StorageError):
                self.store.delete(key)

        self._thread.submit(work)

    def sweep(
        self,
        before: Epoch,
        snapshots: Collection[str],
        files: Collection[str] | None,
        *,
        written: bool,
    ) -> None:
        """Delete what past epochs left; what cannot be deleted stays until the next epoch begins."""

        def sweep_store() -> None:
            with suppress(StorageError):
                sweep_snapshots(self.store, before, snapshots, lambda: self._closed)

        def sweep_output(held: Collection[str]) -> None:
            with suppress(StorageError):
                self._outlet.sweep(before, held, written=written)

        self._sweeper.submit(sweep_store)
        if files is not None:
            self._thread.submit(partial(sweep_output, files))  # the outlet belongs to this thread

    def tidy(self, act: Callable[[], None]) -> None:
        """Do something behind what was asked for before; if the disk refuses, it is not done."""

        def work() -> None:
            with suppress(OSError):
                act()

        self._thread.submit(work)

    def compact(self, through: int) -> None:
        """Let the manifests up to a number be kept in few objects; what fails is done the next time."""

        def work() -> None:
            with suppress(StorageError):
                self._outlet.compact(through)

        self._thread.submit(work)

    def _do(self, work: Callable[[], None], asker: DecisionAsker, ticket: Ticket) -> None:
        def guarded() -> None:
            try:
                work()
            except StorageError as error:
                failure = error
                self._post(lambda: self._failed(asker, ticket, failure))
            except BaseException as error:  # a defect: it ends the job, not only this thread
                defect = error
                self._post(lambda: _raise(defect))

        self._thread.submit(guarded)

    def _failed(self, asker: DecisionAsker, ticket: Ticket, error: StorageError) -> None:
        if self._is_definite(ticket, error):
            self._give_up(error)
            return
        if time.monotonic() >= self._quiet_until_s:
            self._quiet_until_s = time.monotonic() + COMPLAINT_SECONDS
            self._complain(str(error))
        asker.failed(ticket)

    def _is_definite(self, ticket: Ticket, error: StorageError) -> bool:
        if isinstance(error, StoreUnavailable):
            self._missing_since_s.pop(ticket, None)
            return False
        if isinstance(error, ObjectMissing):
            since_s = self._missing_since_s.setdefault(ticket, time.monotonic())
            return time.monotonic() - since_s >= SIGHT_SECONDS
        return True

    def close(self) -> None:
        """Wait until all that was asked for is written; a sweep need not come to its end."""
        self._closed = True
        self._sweeper.shutdown(wait=True, cancel_futures=True)
        self._thread.shutdown(wait=True)


def _raise(error: BaseException) -> None:
    raise error
