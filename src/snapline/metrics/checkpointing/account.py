"""Checkpoints as the coordinator saw them: how many, how long they took, and which were for nothing.

A checkpoint is *skipped* when a rollback goes back to an older one: it was stored in vain. The
*rollback distance* is what the job has to do again: the records that its sources had read since the line,
and the time since the oldest checkpoint of the line became durable.

*Checkpoint time* is, where the coordinator orders rounds, the time from the order until the last task has
stored; where every task decides by itself it is the time from trigger to durable, which slots measure. How
the time of each single checkpoint was spent is in `history`.

A checkpoint is *useless* if it lies on a Z-cycle: no consistent line can contain it, whatever fails. It is
*invalid* if it is useless or was skipped. CheckMate calls invalid what is useless, but its Table III counts
mostly skipped ones: its acyclic queries have invalid checkpoints, and cannot have Z-cycles.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from snapline.core.effects import Commit, CoordinatorEffect, Order, Rollback, Scope
from snapline.core.events import SnapshotStored
from snapline.core.messages import CheckpointMeta, RecoveryLine
from snapline.ids import INITIAL, CheckpointNo, Micros, TaskId
from snapline.journal.entry import COORDINATOR, Built, Entry, Handled, Happened
from snapline.journal.happenings import CheckpointTimed, JobRunning, LineFound
from snapline.metrics.checkpointing.history import Phases, phases_of
from snapline.recovery.history import Node
from snapline.recovery.useless import UselessFinder

LINES_KEPT = 32
"""Checkpoints before the last so many lines are forgotten: no rollback goes back to them."""

ROUNDS_TIMED = 10_000
"""At least so many of the last rounds are timed, and as many of the last checkpoints of tasks."""


@dataclass(frozen=True, slots=True)
class _Kept:
    stored_us: Micros
    offset: int  # records that a source had read
    position: int  # records that a sink had written


@dataclass(slots=True)
class TaskCheckpoints:
    """The checkpoints of one task so far."""

    first_us: Micros  # when the coordinator knew of the first
    last_us: Micros = 0  # ... and of the last
    stored: int = 0
    bytes: int = 0


@dataclass(slots=True)
class CheckpointAccount:
    """All checkpoints of a run so far, from the coordinator's entries in the journal."""

    stored: int = 0
    forced: int = 0
    skipped: int = 0
    aborted: int = 0  # rounds that were given up
    bytes: int = 0
    bytes_max: int = 0
    deltas: int = 0  # of those stored; the others are full
    delta_bytes: int = 0
    rounds: int = 0  # rounds that were complete
    round_us: list[Micros] = field(default_factory=list)  # order to last task durable, of the last
    phases: list[Phases] = field(default_factory=list)  # of checkpoints of tasks, of the last
    useless: UselessFinder = field(default_factory=UselessFinder)
    tasks: dict[TaskId, TaskCheckpoints] = field(default_factory=dict)  # by task, if it has any
    lines: int = 0  # lines that were committed
    lines_us: tuple[Micros, Micros] = (0, 0)  # when the first and the last of them were
    offset: int = 0  # records read through the last line: of a finished run, all
    position: int = 0  # records written through it
    read: int | None = None  # records read in this timeline; None: nobody measures it
    restoring: bool = True  # until all slots run, at first and after every rollback
    _kept: dict[TaskId, dict[CheckpointNo, _Kept]] = field(default_factory=dict)
    _lines: list[RecoveryLine] = field(default_factory=list)  # the last that share no checkpoint
    _fresh: int = 0  # stored since the last rollback
    _rounds: dict[CheckpointNo, Micros] = field(default_factory=dict)  # when they were ordered

    def see(self, entry: Entry) -> LineFound | None:
        """Take an entry into account; return the line if one was found for a rollback.

        Another loss during that rollback finds the same line again, which is not returned twice.
        """
        found = self._see(entry)
        if found is None or (self.restoring and not found.stored):
            return None
        self.restoring = True
        return found

    def _see(self, entry: Entry) -> LineFound | None:
        if entry.actor != COORDINATOR:
            return None
        if isinstance(entry, Happened):
            self.restoring &= not isinstance(entry.what, JobRunning)
            if isinstance(entry.what, CheckpointTimed):
                self._timed(entry.what, entry.at_us)
        if isinstance(entry, Built):
            for meta in entry.line:
                self._keep(meta, entry.at_us)
                self.useless.stored(meta)
        if not isinstance(entry, Handled):
            return None
        if isinstance(entry.event, SnapshotStored):
            self._stored(entry.event.meta, entry.at_us)
        found = None
        for effect in entry.effects:
            found = self._perform(effect, entry.at_us) or found  # type: ignore[arg-type]
        return found

    def _keep(self, meta: CheckpointMeta, at_us: Micros) -> None:
        kept = _Kept(at_us, sum(meta.offsets.values()), meta.position)
        self._kept.setdefault(meta.task, {})[meta.checkpoint] = kept

    def _stored(self, meta: CheckpointMeta, at_us: Micros) -> None:
        self.stored += 1
        self._fresh += 1
        self.forced += meta.forced
        self.bytes += meta.bytes
        self.bytes_max = max(self.bytes_max, meta.bytes)
        if meta.parent is not None:
            self.deltas += 1
            self.delta_bytes += meta.bytes
        of_task = self.tasks.setdefault(meta.task, TaskCheckpoints(at_us))
        of_task.last_us = at_us
        of_task.stored += 1
        of_task.bytes += meta.bytes
        self._keep(meta, at_us)
        self.useless.stored(meta)

    def _timed(self, timed: CheckpointTimed, at_us: Micros) -> None:
        ordered_us = self._rounds.get(timed.moments.round or INITIAL)
        self.phases.append(phases_of(timed.moments, ordered_us, at_us))
        if len(self.phases) > 2 * ROUNDS_TIMED:
            del self.phases[:-ROUNDS_TIMED]

    @property
    def known(self) -> int:
        """How many checkpoints a rollback may still go back to, as far as this account knows."""
        return sum(len(kept) for kept in self._kept.values())

    @property
    def in_rounds(self) -> bool:
        """Whether most lines were rounds. Where tasks act on their own, at most the last one is."""
        return 2 * self.rounds > self.lines

    @property
    def interval_us(self) -> float | None:
        """The mean time between two committed lines; None if there were less than two."""
        first_us, last_us = self.lines_us
        return (last_us - first_us) / (self.lines - 1) if self.lines > 1 else None

    def invalid(self, useless: Collection[Node]) -> int:
        """How many checkpoints were skipped or useless, where these are the useless ones."""
        return self.skipped + sum(node not in self.useless.skipped for node in useless)

    def _perform(self, effect: CoordinatorEffect, at_us: Micros) -> LineFound | None:
        match effect:
            case Order(_, command):
                if command.begins is not None:
                    self._rounds.setdefault(command.begins, at_us)
                if command.aborts is not None:
                    self.aborted += self._rounds.pop(command.aborts, None) is not None
            case Commit(line):
                self._committed(line, at_us)
            case Rollback(line, Scope.ALL):
                self.useless.rolled_back(line)
                return self._back(line, at_us)
            case Rollback():
                self.useless.give_up()
            case _:
                pass
        return None

    def _committed(self, line: RecoveryLine, at_us: Micros) -> None:
        kept = self._line(line)
        self.lines += 1
        self.lines_us = (self.lines_us[0] if self.lines > 1 else at_us, at_us)
        self.useless.committed(line)
        self.offset = sum(each.offset for each in kept.values())
        self.position = sum(each.position for each in kept.values())
        newest = max(line.checkpoints.values())
        if newest in self._rounds and min(line.checkpoints.values()) == newest:
            self.rounds += 1
            self.round_us.append(at_us - self._rounds.pop(newest))
            if len(self.round_us) > 2 * ROUNDS_TIMED:
                del self.round_us[:-ROUNDS_TIMED]
        self._forget_before(line)

    def _forget_before(self, line: RecoveryLine) -> None:
        """Forget the checkpoints before the last lines, of which `line` is the newest."""
        before = self._lines[-1].checkpoints if self._lines else {}
        if any(number <= before.get(task, -1) for task, number in line.checkpoints.items()):
            return
        self._lines = [*self._lines, line][-LINES_KEPT:]
        for task, oldest in self._lines[0].checkpoints.items():
            kept = self._kept.get(task, {})
            while kept and (first := next(iter(kept))) < oldest:
                del kept[first]

    def _back(self, line: RecoveryLine, at_us: Micros) -> LineFound:
        kept = self._line(line)
        self._lines = [each for each in self._lines if not _is_beyond(each, line)]
        skipped = [
            (task, number)
            for task, numbers in self._kept.items()
            for number in numbers
            if number > line.checkpoints.get(task, number)
        ]
        for task, number in skipped:
            del self._kept[task][number]
        stored, self._fresh = max(self._fresh, len(skipped)), 0
        self.skipped += len(skipped)
        offset = sum(each.offset for each in kept.values())
        back_records = None
        if self.read is not None:
            back_records, self.read = max(0, self.read - offset), offset
        whole = len(kept) == len(line.checkpoints)
        oldest_us = min((each.stored_us for each in kept.values()), default=0) if whole else 0
        back_s = round(max(0, at_us - oldest_us) / 1e6, 3)
        self._rounds.clear()
        return LineFound(stored, len(skipped), back_s, back_records)

    def _line(self, line: RecoveryLine) -> Mapping[TaskId, _Kept]:
        """What is known of the checkpoints of a line; initial ones are left out."""
        return {
            task: self._kept[task][number]
            for task, number in line.checkpoints.items()
            if number in self._kept.get(task, {})
        }


def _is_beyond(line: RecoveryLine, other: RecoveryLine) -> bool:
    """Whether some task is at a newer checkpoint on `line` than on the other."""
    return any(n > other.checkpoints.get(task, n) for task, n in line.checkpoints.items())
