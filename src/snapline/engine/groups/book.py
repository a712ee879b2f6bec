"""The groups of one task, from the capture to where a checkpoint that counts refers to them.

A group is stored as soon as it is captured. The snapshot that refers to it is stored when all its groups
are, because its index has their digests; so a snapshot that is there has its groups. A checkpoint that is
abandoned leaves its groups to the next one: they are captured, and not captured again.

What a checkpoint adds and drops is reported with it, against the checkpoint that was reported before. What
was never reported nobody else knows of, so it is deleted here when the epoch ends.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from snapline.batch import Batch
from snapline.dataflow.operators.operator import Capture
from snapline.engine.groups.content import Content
from snapline.engine.groups.index import INDEX, Held, StoredGroup, write_index
from snapline.engine.shell import SlotShell, Ticket
from snapline.ids import CheckpointNo
from snapline.storage.api import Life


@dataclass(slots=True)
class GroupChange:
    """What a checkpoint changes about the groups of its task."""

    added: list[StoredGroup] = field(default_factory=list)
    dropped: list[StoredGroup] = field(default_factory=list)
    waiting: set[int] = field(default_factory=set)  # calls to storage, by the numbers of tickets
    index: Callable[[], Mapping[str, Batch]] | None = None  # makes it once all groups are stored

    @property
    def bytes(self) -> int:
        """The size of the groups that were written."""
        return sum(group.bytes for group in self.added)

    def follow(self, other: "GroupChange") -> None:
        """Take over what an abandoned checkpoint before this one has changed."""
        self.added[:0] = other.added
        self.dropped[:0] = other.dropped


class GroupBook:
    """Which groups of a task are stored, and where."""

    def __init__(
        self, life: Life, shell: SlotShell, compress: bool, held: Iterable[StoredGroup] = ()
    ) -> None:
        """`held` are the groups from which the task was restored."""
        self.life = life
        self.shell = shell
        self.compress = compress
        self.held: Held = {(group.part, group.number): group for group in held}
        self.storing: dict[int, tuple[StoredGroup, Content]] = {}  #: by the numbers of tickets
        self.unreported: dict[str, None] = {}  #: objects of which only this task knows
        self.left = GroupChange()  #: of checkpoints that were abandoned, for the next one
        self._tickets = 0

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the objects of all groups that the state has now."""
        return tuple(group.key for group in self.held.values())

    def take(self, checkpoint: CheckpointNo, capture: Capture) -> GroupChange:
        """Store the groups of a capture as far as they are new; return what has changed."""
        change, self.left = self.left, GroupChange()
        added: list[StoredGroup] = []
        gone: list[StoredGroup] = []
        for part, groups in capture.groups.items():
            known = (self.held.pop((part, number), None) for number in groups.dropped)
            gone += [dropped for dropped in known if dropped is not None]
            for number, rows in groups.written.items():
                group = StoredGroup(part, number, self.life.name, checkpoint, rows.length)
                if before := self.held.get((part, number)):
                    change.dropped.append(before)
                self.held[part, number] = group
                added.append(group)
                self._store(group, Capture(True, {part: rows}))
        change.added += added
        change.dropped += gone
        change.waiting = set(self.storing)
        if capture.groups:
            listed = list(self.held.values()) if capture.full else added
            change.index = partial(_index, listed, () if capture.full else gone)
        return change

    def _store(self, group: StoredGroup, capture: Capture) -> None:
        self._tickets += 1
        self.unreported[group.key] = None
        self.storing[self._tickets] = group, Content(capture, b"", (), compress=self.compress)
        self.ask(self._tickets)

    def ask(self, number: int) -> None:
        """Store a group, for the first time or again."""
        if number in self.storing:
            group, content = self.storing[number]
            ticket = Ticket("group", self.life.epoch, self.life.task, number)
            self.shell.store(ticket, group.key, content)

    def stored(self, number: int) -> None:
        """Note that a group is stored."""
        if known := self.storing.pop(number, None):
            group, content = known
            group.bytes, group.digest = content.bytes, content.digest

    def reported(self, change: GroupChange) -> None:
        """Note that a checkpoint with this change counts: others know of its groups now."""
        for group in change.added:
            self.unreported.pop(group.key, None)

    def forget(self) -> None:
        """Delete all that nobody else knows of: no checkpoint will refer to it."""
        for key in self.unreported:
            self.shell.delete(key)
        self.unreported, self.storing = {}, {}


def _index(listed: Sequence[StoredGroup], gone: Sequence[StoredGroup]) -> dict[str, Batch]:
    return {INDEX: write_index(listed, gone)}
