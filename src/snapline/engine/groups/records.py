"""Which group belongs to which checkpoints of its task, as the coordinator knows it.

A group belongs to all checkpoints of its task from the one that added it to the last one before it was
dropped. Of those that exist one is enough to keep it; when the last one goes, so does the group. Where a
task goes back, what later checkpoints dropped belongs to it again, and what they added is garbage. What it
was not restored from belongs to no later checkpoint: a task that could read none of them begins empty.

A coordinator that takes a run over is told by each task which groups it was restored from. Until then it
knows of none, and deletes none.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable

from snapline.ids import INITIAL, CheckpointNo, TaskId


class GroupRecords:
    """The groups of all tasks, by the names of their objects."""

    def __init__(self) -> None:
        #: per task and group the first checkpoint that has it
        self.since: dict[TaskId, dict[str, CheckpointNo]] = {}
        #: the same of the first one that has it no more
        self.until: dict[TaskId, dict[str, CheckpointNo]] = {}
        self.garbage: list[str] = []  #: what nobody refers to, and is still to be deleted

    def keys(self) -> set[str]:
        """The names of all groups to which any checkpoint may refer."""
        return {key for known in self.since.values() for key in known}

    def add(
        self,
        task: TaskId,
        checkpoint: CheckpointNo,
        added: Iterable[str],
        dropped: Iterable[str],
    ) -> None:
        """Note what a checkpoint has changed, which counts now and is the newest of its task."""
        since = self.since.setdefault(task, {})
        since.update(dict.fromkeys(added, checkpoint))
        until = self.until.setdefault(task, {})
        for key in dropped:
            since.setdefault(key, INITIAL)
            until[key] = checkpoint

    def adopt(self, task: TaskId, checkpoint: CheckpointNo, keys: Iterable[str]) -> None:
        """Note the groups from which a task was restored, of which this is the newest checkpoint."""
        since, until = self.since.setdefault(task, {}), self.until.setdefault(task, {})
        has = dict.fromkeys(keys)
        for key in since:
            if key not in has:
                until.setdefault(key, checkpoint + 1)
        for key in has:
            since.setdefault(key, checkpoint)

    def go_back(self, task: TaskId, last: CheckpointNo) -> None:
        """Note that no checkpoint of a task beyond `last` exists any more."""
        since, until = self.since.get(task, {}), self.until.get(task, {})
        for key in [key for key, number in until.items() if number > last]:
            del until[key]
        self._forget(task, [key for key, number in since.items() if number > last])

    def collect(self, task: TaskId, known: Collection[CheckpointNo]) -> None:
        """Give up the groups to which none of the checkpoints refers that exist of a task."""
        since, numbers = self.since.get(task, {}), sorted(known)
        dead = []
        for key, end in self.until.get(task, {}).items():
            first = bisect_left(numbers, since[key])
            if first == len(numbers) or numbers[first] >= end:
                dead.append(key)
        self._forget(task, dead)

    def _forget(self, task: TaskId, keys: Iterable[str]) -> None:
        for key in keys:
            del self.since[task][key]
            self.until.get(task, {}).pop(key, None)
            self.garbage.append(key)

    def take_garbage(self) -> list[str]:
        """What is to be deleted, once."""
        garbage, self.garbage = self.garbage, []
        return garbage
