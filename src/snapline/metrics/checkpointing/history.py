"""How the time of each checkpoint was spent, and all checkpoints of a run, one row each.

The time of a checkpoint of a task goes from the moment at which it was due until the coordinator has it.
Its phases follow each other without a gap, so they add up to that time:

- *start delay*, until the task is told: of a round from the coordinator's order on until the task takes its
  first marker or command, of a task's own checkpoint from when its timer was to fire; 0 for a forced one;
- *alignment*, until the capture begins: the wait for the markers of other inputs, or for a world to stop;
- *blocked*: the capture, while nothing else happens in the slot;
- *background*, until it is durable: recording messages in flight, encoding, storing, syncing the log and
  the output, and waiting for earlier checkpoints of the task;
- *reporting*, until the coordinator has it.

The first and the last of them compare clocks of two processes. On one machine that is one clock; between
machines they are as good as the clocks agree, and never below 0.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

from snapline.core.effects import Order, Rollback, Scope
from snapline.core.events import SnapshotStored
from snapline.core.messages import CheckpointMeta, RecoveryLine
from snapline.ids import INITIAL, CheckpointNo, Epoch, Micros, TaskId, first_checkpoint
from snapline.journal.entry import COORDINATOR, Built, Entry, Handled, Happened
from snapline.journal.happenings import CheckpointMoments, CheckpointTimed, LineDecided
from snapline.recovery.history import Node
from snapline.recovery.useless import UselessFinder


@dataclass(frozen=True, slots=True)
class Phases:
    """How long each phase of a checkpoint took, in microseconds; they add up to its whole time."""

    start_us: Micros  # when it was due, since input began to be due
    start_delay_us: Micros
    alignment_us: Micros
    blocked_us: Micros
    background_us: Micros
    reporting_us: Micros

    @property
    def whole_us(self) -> Micros:
        """The time from when it was due until the coordinator had it."""
        delays_us = self.start_delay_us + self.alignment_us + self.blocked_us
        return delays_us + self.background_us + self.reporting_us


def phases_of(moments: CheckpointMoments, ordered_us: Micros | None, reported_us: Micros) -> Phases:
    """The phases of a checkpoint; `ordered_us` is when the coordinator ordered its round, if it did."""
    start_us = moments.begun_us
    if moments.round is not None:
        start_us = start_us if ordered_us is None else ordered_us
    elif moments.due_us is not None:
        start_us = moments.due_us
    in_slot = (moments.begun_us, moments.taken_us, moments.captured_us, moments.durable_us)
    marks = accumulate((start_us, *in_slot, reported_us), max)
    return Phases(start_us, *(later - earlier for earlier, later in pairwise(marks)))


@dataclass(slots=True)
class CheckpointRow:
    """One checkpoint of a task that was stored, and what became of it."""

    task: TaskId
    checkpoint: CheckpointNo  # as the journal has it
    epoch: Epoch
    number: int  # within its epoch
    kind: str  # `full`, or `delta`: what changed since the one before
    forced: bool  # a message forced it, before its time
    bytes: int
    stored_us: Micros  # when the coordinator had it
    phases: Phases | None = None  # None: nobody measured them
    committed: bool = False  # it is on a line that was committed
    skipped: bool = False  # a rollback went back beyond it
    useless: bool | None = None  # no consistent line can contain it; None: not known


def checkpoint_rows(entries: Iterable[Entry]) -> list[CheckpointRow]:
    """All checkpoints that the coordinator knew of, in the order in which it heard of them."""
    history = _History()
    for entry in entries:
        if entry.actor == COORDINATOR:
            history.see(entry)
    return history.finished()


class _History:
    """The checkpoints of a run, as its coordinator's entries tell of them."""

    def __init__(self) -> None:
        self._rows: dict[Node, CheckpointRow] = {}
        self._alive: dict[Node, CheckpointRow] = {}  #: those that no rollback took back
        self._ordered_us: dict[CheckpointNo, Micros] = {}
        self._timed: dict[Node, Phases] = {}
        self._useless = UselessFinder()

    def see(self, entry: Entry) -> None:
        """Take an entry of the coordinator's into account."""
        match entry:
            case Happened(at_us=at_us, what=CheckpointTimed(task, checkpoint, moments)):
                ordered_us = self._ordered_us.get(moments.round or 0)
                self._timed[task, checkpoint] = phases_of(moments, ordered_us, at_us)
            case Happened(epoch=epoch, what=LineDecided(epoch=decided, line=line)):
                if decided == epoch:  # a line was committed, and no epoch begun
                    self._committed(RecoveryLine(line))
            case Built(line=line):
                self._resumed(line)
            case Handled(at_us=at_us, event=event):
                if isinstance(event, SnapshotStored):
                    self._stored(event.meta, at_us)
                for effect in entry.effects:
                    self._perform(effect, at_us)
            case _:
                pass

    def _perform(self, effect: object, at_us: Micros) -> None:
        match effect:
            case Order(_, command) if command.begins is not None:
                self._ordered_us.setdefault(command.begins, at_us)
            case Rollback(line, Scope.ALL):
                self._back(line)
            case Rollback():
                self._useless.give_up()
            case _:
                pass

    def _back(self, line: RecoveryLine) -> None:
        self._useless.rolled_back(line)
        for node in [n for n in self._alive if n[1] > line.checkpoints.get(n[0], n[1])]:
            self._alive.pop(node).skipped = True

    def _resumed(self, metas: tuple[CheckpointMeta, ...]) -> None:
        """Go on from the line of a resumed coordinator; the first one has none, and nothing before it."""
        line = {task: INITIAL for task, _ in self._alive}
        self._back(RecoveryLine({**line, **{meta.task: meta.checkpoint for meta in metas}}))
        for meta in metas:
            self._useless.stored(meta)

    def _stored(self, meta: CheckpointMeta, at_us: Micros) -> None:
        node = meta.task, meta.checkpoint
        row = CheckpointRow(
            meta.task,
            meta.checkpoint,
            meta.epoch,
            meta.checkpoint - first_checkpoint(meta.epoch) + 1,
            "full" if meta.parent is None else "delta",
            meta.forced,
            meta.bytes,
            at_us,
            self._timed.pop(node, None),
        )
        self._rows[node] = self._alive[node] = row
        self._useless.stored(meta)

    def _committed(self, line: RecoveryLine) -> None:
        self._useless.committed(line)
        for node in line.checkpoints.items():
            if node in self._rows:
                self._rows[node].committed = True

    def finished(self) -> list[CheckpointRow]:
        """All rows, now that it is known which of them were useless."""
        found = self._useless.found()
        for node, row in self._rows.items():
            row.useless = None if found is None else node in found
        return [*self._rows.values()]


PHASES = ("start_delay", "alignment", "blocked", "background", "reporting")

COLUMNS = {
    "task": "string",
    "checkpoint": "bigint",
    "epoch": "bigint",
    "number": "bigint",
    "kind": "string",
    "forced": "boolean",
    "bytes": "bigint",
    "stored_ms": "double",
    "start_ms": "double",
    **{f"{name}_ms": "double" for name in (*PHASES, "time")},
    "committed": "boolean",
    "skipped": "boolean",
    "useless": "boolean",
}
"""The columns of the table of checkpoints, with types as SQL calls them."""


def flat(rows: Iterable[CheckpointRow]) -> Iterator[dict[str, object]]:
    """The rows as the table has them: plain values, with times in milliseconds."""
    for row in rows:
        yield {
            "task": row.task,
            "checkpoint": row.checkpoint,
            "epoch": row.epoch,
            "number": row.number,
            "kind": row.kind,
            "forced": row.forced,
            "bytes": row.bytes,
            "stored_ms": row.stored_us / 1000,
            **_times(row.phases),
            "committed": row.committed,
            "skipped": row.skipped,
            "useless": row.useless,
        }


def _times(phases: Phases | None) -> dict[str, float | None]:
    if phases is None:
        return dict.fromkeys(("start_ms", *(f"{name}_ms" for name in PHASES), "time_ms"))
    each = {f"{name}_ms": getattr(phases, f"{name}_us") / 1000 for name in PHASES}
    return {"start_ms": phases.start_us / 1000, **each, "time_ms": phases.whole_us / 1000}
