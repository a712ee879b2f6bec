"""What faults need of a real run, and the one place that knows how the driver's parts do it.

An injector decides when something breaks and writes it down; through this port it reaches processes, the
network, the store and the run, and nothing else of the driver.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Protocol

from snapline.core.messages import CheckpointMeta
from snapline.engine.slot.checkpoints import key_of, stored_groups
from snapline.errors import StorageError
from snapline.ids import Incarnation, Millis, SlotId
from snapline.journal.entry import Entry
from snapline.journal.fault_happenings import FaultHappening
from snapline.net.loop import EventLoop
from snapline.rundir.directory import RunDirectory
from snapline.runtime.driver.control import RunControl
from snapline.runtime.driver.killer import Killer
from snapline.runtime.driver.roster import Roster, Timeouts
from snapline.runtime.driver.tenure import Tenure
from snapline.runtime.wire.codec import Wire
from snapline.runtime.wire.control_messages import CutLink, Slow
from snapline.storage.api import Storage
from snapline.storage.files.trouble import Trouble


class BreakableRun(RunControl, Protocol):
    """What the port asks of the driver."""

    watch: Callable[[Entry], None]  #: is given every journal entry

    @property
    def directory(self) -> RunDirectory:
        """The files of the run."""
        ...

    @property
    def storage(self) -> Storage:
        """The storage of the run."""
        ...

    @property
    def tenure(self) -> Tenure:
        """The driver's time at the run."""
        ...

    @property
    def roster(self) -> Roster:
        """Who has registered."""
        ...

    def now_ms(self) -> Millis:
        """The time since input began to be due."""
        ...

    def let_back(self, slot: SlotId) -> None:
        """Let a slot that was kept away have a process again."""
        ...

    def flush(self) -> None:
        """Write the journal to disk."""
        ...


class FaultPort:
    """A run that can be broken on purpose."""

    def __init__(
        self, run: BreakableRun, killer: Killer, loop: EventLoop, wire: Wire, timeouts: Timeouts
    ) -> None:
        self._run = run
        self._loop = loop
        self._wire = wire
        self._timeouts = timeouts
        self.processes = killer  #: reaches the processes of slots

    # The run.

    def watch(self, see: Callable[[Entry], None]) -> None:
        """Let a function see every journal entry."""
        self._run.watch = see

    def now_ms(self) -> Millis:
        """The time since input began to be due."""
        return self._run.now_ms()

    def after(self, delay_s: float, action: Callable[[], None]) -> None:
        """Do something after a while."""
        self._loop.after(delay_s, action)

    def note(self, actor: str, what: FaultHappening) -> None:
        """Write down what a fault did to an actor."""
        self._run.note(actor, self._run.engine.epoch, what)

    def flush(self) -> None:
        """Write the journal to disk now: in a moment a fault may have ended this process."""
        self._run.flush()

    def give_up(self, problem: str) -> None:
        """End the run: what was asked for cannot be done."""
        self._run.finish(problem)

    def is_replaced(self) -> bool:
        """Whether another driver has taken the run over, so that this one may not break it."""
        return self._run.tenure.is_over(self._run.engine.decider.number)

    def strike_all(self) -> None:
        """Note that a fault may end any slot, because all of them need what it breaks."""
        self.processes.strike(*self._run.engine.job.slots)

    def keep_away(self, slot: SlotId, for_ms: Millis) -> None:
        """Let no process take the place of a slot for so long; 0: for no time at all."""
        if for_ms:
            self._run.roster.away[slot] += 1
            self.after(for_ms / 1000, partial(self._run.let_back, slot))

    # The network.

    @property
    def patience_ms(self) -> Millis:
        """How long a slot may be silent before it is given up."""
        return int(self._timeouts.silence_s * 1000)

    def lives(self, slots: Iterable[SlotId]) -> dict[SlotId, Incarnation]:
        """The present lives of these slots, without those that have no process."""
        members = filter(None, map(self.processes.member, slots))
        return dict(member.life for member in members if member.life)

    def tell(self, slot: SlotId, message: Slow | CutLink) -> bool:
        """Let a slot do something to its own network; False if it is not there."""
        member = self.processes.member(slot)
        if member is None:
            return False
        self.processes.strike(slot)
        member.connection.send(self._wire.pack(message))
        return True

    # The store.

    @property
    def trouble(self) -> Trouble:
        """What goes wrong with the store on purpose, besides being away."""
        return self._run.directory.trouble

    def take_store_away(self) -> None:
        """Let every call to the store fail, in every process, until it is brought back."""
        self._run.directory.take_store_away(self._run.tenure.author)

    def bring_store_back(self) -> bool:
        """End what `take_store_away` began; False if somebody else has taken the store away."""
        return self._run.directory.bring_store_back(self._run.tenure.author)

    def newest_snapshots(self, slot: SlotId) -> list[CheckpointMeta]:
        """Of each task of a slot the newest snapshot that counts, if it has one."""
        engine = self._run.engine
        known, hosted = engine.registry.metas, engine.job.hosted[slot]
        return [known[task][max(known[task])] for task in hosted if known[task]]

    def damage(self, meta: CheckpointMeta) -> None:
        """Change the bytes of a stored snapshot, or of its last group, without telling anybody."""
        store, registry = self._run.storage.store, self._run.engine.registry
        key = key_of(meta)
        if meta.groups:
            with suppress(StorageError):  # it may be damaged already
                key = stored_groups(store, registry.chain(meta.task, meta.checkpoint))[-1].key
        store.damage(key)
