"""Loads the groups of the tasks of a slot that is restored.

Of a slot that goes back with all others every group has to be there: a snapshot one of whose groups cannot
be read is as damaged as if it could not be read itself. A slot that restarts alone goes on without a group
that is damaged, and says so: that costs the rows of the group, and not the rest of the state.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace

from snapline.batch import Batch
from snapline.dataflow.operators.operator import Capture, Groups
from snapline.engine.control import Restore
from snapline.engine.groups.index import INDEX, Held, StoredGroup, groups_of_chain
from snapline.engine.shell import SlotShell, Ticket
from snapline.ids import TaskId
from snapline.storage.api import Store
from snapline.storage.codec import StoredSnapshot, decode_snapshot


def load_captures(
    store: Store, chain: Sequence[StoredSnapshot], but: Container[str]
) -> list[Capture]:
    """The captures in a chain of snapshots, with all groups, and without these parts.

    Raises ObjectMissing or ObjectDamaged.
    """
    parts: dict[str, dict[int, Batch]] = {}
    for group in groups_of_chain(chain).values():
        data = store.get(group.key, group.digest)
        parts.setdefault(group.part, {})[group.number] = decode_snapshot(data).parts[group.part]
    captures = [
        Capture(
            each.full, {n: part for n, part in each.parts.items() if n != INDEX and n not in but}
        )
        for each in chain
    ]
    groups = {part: Groups(groups) for part, groups in parts.items()}
    return [*captures[:-1], replace(captures[-1], groups=groups)]


class GroupLoader:
    """The groups of several tasks, while they are loaded."""

    def __init__(
        self, shell: SlotShell, order: Restore, damaged: Callable[[TaskId, StoredGroup], None]
    ) -> None:
        """`damaged` is told of each group that cannot be read."""
        self.shell = shell
        self.order = order
        self.damaged = damaged
        self.wanted: list[tuple[TaskId, StoredGroup]] = []  #: by the numbers of tickets
        self.loaded: dict[int, Batch | None] = {}  #: by the same; None: it cannot be read

    def begin(self, indexes: Mapping[TaskId, Held]) -> None:
        """Begin to load the groups of tasks."""
        self.wanted = [(task, group) for task, held in indexes.items() for group in held.values()]
        for number, (task, _) in enumerate(self.wanted):
            order = self.order
            self.retry(Ticket("fetch group", order.epoch, task, number, order.number))

    def retry(self, ticket: Ticket) -> None:
        """Begin to load one group, for the first time or again."""
        group = self.wanted[ticket.number][1]
        self.shell.fetch(ticket, group.key, group.digest)

    def fetched(self, ticket: Ticket, data: bytes | None) -> None:
        """Take a group that was loaded, or note that it cannot be read."""
        task, group = self.wanted[ticket.number]
        self.loaded[ticket.number] = decode_snapshot(data).parts[group.part] if data else None
        if data is None:
            self.damaged(task, group)

    def awaits(self, ticket: Ticket) -> bool:
        """Whether it has asked for this, and got no answer yet."""
        number = ticket.number
        return number < len(self.wanted) and number not in self.loaded

    @property
    def complete(self) -> bool:
        """Whether all have been loaded, as far as they can be."""
        return len(self.loaded) == len(self.wanted)

    def groups(self, task: TaskId) -> dict[str, Groups]:
        """The groups of a task, by part, for its operator."""
        parts: dict[str, dict[int, Batch]] = {}
        lost: dict[str, list[int]] = {}
        for number, (owner, group) in enumerate(self.wanted):
            if owner != task:
                continue
            rows = self.loaded[number]
            if rows is None:
                lost.setdefault(group.part, []).append(group.number)
            else:
                parts.setdefault(group.part, {})[group.number] = rows
        return {p: Groups(parts.get(p, {}), lost=lost.get(p, ())) for p in {**parts, **lost}}
