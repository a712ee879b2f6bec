"""Simulated storage: stores in memory, and in front of them delays, failures and crashes."""

import random
from collections.abc import Callable
from typing import Protocol

from snapline.engine.coordinator.ledger import (
    Decision,
    decision_key,
    decision_number,
    decode,
    read_last,
)
from snapline.ids import Micros
from snapline.sim.world.clock import SimClock
from snapline.sim.world.costs import Costs
from snapline.sim.world.outlet import SimOutlet
from snapline.storage.discards.port import MemoryDiscardStore
from snapline.storage.memory import MemoryStorage


class Caller(Protocol):
    """What the storage asks of the process that calls it."""

    alive: bool
    paused: bool

    def call(self, action: Callable[[], None]) -> None:
        """Let the process do something, later if it is paused."""
        ...


class SimStorage(MemoryStorage):
    """All that survives a process: stores in memory, and what faults do to them."""

    outlet: SimOutlet

    def __init__(self, clock: SimClock, costs: Costs, rng: random.Random) -> None:
        super().__init__(SimOutlet(lambda: clock.now_us // 1000))
        self.discards = MemoryDiscardStore()  #: identities of records that tasks have discarded
        self.clock = clock
        self.costs = costs
        self.rng = rng
        self.ledger: dict[int, Decision] = {}  #: all that was ever decided, whatever became of it
        self.last_decision = 0
        self.collected: dict[int, None] = {}  #: the numbers of those that were deleted as old
        self.outage_until_us: Micros = 0
        self.slow_us: Micros = 0
        self.slow_until_us: Micros = 0
        self.failing = 0.0  #: the chance of a call for an object to fail ...
        self.failing_until_us: Micros = 0  #: ... until then

    def call(
        self,
        cost_us: Micros,
        caller: Caller,
        act: Callable[[], None],
        done: Callable[[], None],
        failed: Callable[[], None],
        *,
        an_object: bool = True,
    ) -> None:
        """Make a call in the background, for an object or for a file (a log, an egress).

        In an outage the caller is told that it failed, and it may have happened all the same. If the caller
        dies meanwhile, it happens or not, and nobody is told. If the caller is paused, its call has left
        already, or stands still with it and is made when it goes on, whoever has taken its place by then.
        """
        rng = self.dice(caller)
        slow = self.slow_us if self.clock.now_us < self.slow_until_us else 0
        delay = int(cost_us * (0.5 + rng.expovariate(2.0))) + slow

        def finish() -> None:
            lucky = rng.random() < 0.5
            if not caller.alive:
                if lucky:
                    act()
            elif caller.paused and lucky:
                caller.call(finish)
            elif self.clock.now_us < self.outage_until_us or (an_object and self._fails()):
                if lucky:
                    act()
                failed()
            else:
                act()
                done()

        self.clock.at(self.clock.now_us + delay, finish)

    def dice(self, caller: Caller) -> random.Random:
        """The random numbers for the calls of a process: here all processes draw from one sequence."""
        return self.rng

    def _fails(self) -> bool:
        return self.clock.now_us < self.failing_until_us and self.rng.random() < self.failing

    # The ledger.

    def decide(self, number: int, key: str, data: bytes) -> None:
        """Store a decision unless its number is taken, and remember that it was made.

        The number of a decision that was lost stays taken: what is gone is its content. A number that was
        collected is free again; whoever writes there has decided nothing.
        """
        if number in self.ledger:
            if number in self.collected:
                self.store.put_if_absent(key, data)
        elif self.store.put_if_absent(key, data):
            self.ledger[number] = decode(data)
            self.last_decision = max(number, self.last_decision)

    def delete(self, key: str) -> None:
        """Delete an object, and remember that it was collected if it is a decision."""
        self.store.delete(key)
        if (number := decision_number(key)) is not None:
            self.collected[number] = None

    def may_end(self, author: str) -> bool:
        """Whether this coordinator may write how the run ended.

        It may if nobody decided after it: the end of a run is one more conditional write, behind
        the last decision.
        """
        return not self.ledger or self.ledger[self.last_decision].author == author

    def spoil_decision(self, *, lost: bool) -> int | None:
        """Damage or remove the newest decision whose output is public; its number, if there is one.

        If it were removed before its output is public, nobody could tell that it was ever made.
        """
        for number, decision in reversed(self.ledger.items()):
            public = decision.manifests and decision.published <= self.outlet.last
            if public and self.store.has(decision_key(number)):
                if lost:
                    self.store.delete(decision_key(number))
                else:
                    self.store.damage(decision_key(number))
                return number
        return None

    def resume(self, fingerprint: str) -> Decision | None:
        """The decision at which a coordinator resumes.

        Raises StorageError if the ledger or the public output is damaged, or has a gap.
        """
        past = read_last(self.store, fingerprint)
        published, redone = (past.published, len(past.manifests)) if past else (0, 0)
        self.outlet.reopen(published, redone)
        return past
