"""Makes decisions durable, one after the other, and publishes what they cover.

The order is the guarantee: the decision is durable, THEN its output is published, THEN the coordinator acts
on it (deletes garbage, lets slots restore). What is asked for while a write is under way waits; of several
commits that wait only the last is written, because a line covers all lines before it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from snapline.core.messages import CheckpointMeta, initial_meta
from snapline.engine.job import Job
from snapline.engine.ledger import (
    WHOLE_EVERY,
    Chain,
    Decision,
    Manifest,
    decision_key,
    encode,
)
from snapline.engine.shell import CoordinatorShell, RetryAlarm, Ticket
from snapline.ids import INITIAL, Epoch, Incarnation, SlotId, TaskId
from snapline.storage.api import Extent, Life

Extents: TypeAlias = dict[TaskId, Extent]


@dataclass(slots=True)
class Intent:
    """Something to decide: a line to commit, or an epoch to begin at a line."""

    line: dict[TaskId, Chain]
    epoch: Epoch
    incarnations: dict[SlotId, Incarnation]
    memo: bytes
    begins_epoch: bool
    flush: bool = False  # publish what is held back, too: the job ends


@dataclass(slots=True)
class Decider:
    """The ledger as its one writer sees it."""

    job: Job
    shell: CoordinatorShell
    author: str
    on_decided: Callable[[Intent], None]
    on_deposed: Callable[[], None]
    number: int = 0  #: of the last decision that is durable
    line: dict[TaskId, Chain] = field(default_factory=dict)  #: the last line decided
    previous: dict[TaskId, Chain] = field(default_factory=dict)  #: the line before it
    published: dict[TaskId, Chain] = field(default_factory=dict)  #: all its output is public
    manifest: int = 0  #: number of the last manifest
    held: Extents = field(default_factory=dict)  #: public with the next line
    covered: dict[TaskId, int] = field(default_factory=dict)  #: rows in manifests, or held
    redo: Manifest | None = None  #: of the past: it may have died before it had published this
    waiting: list[Intent] = field(default_factory=list)
    writing: tuple[Intent, Decision] | None = None

    def resume(self, past: Decision) -> None:
        """Go on after the last decision of an earlier coordinator."""
        self.number = past.number
        self.line = self.previous = dict(past.chains)
        self.published = self.line
        self.manifest = past.manifest.number
        self.redo = past.manifest
        self.held = dict(past.held)
        self.covered = {t: self._position(t, chain) for t, chain in self.line.items()}

    @staticmethod
    def _position(task: TaskId, chain: Chain) -> int:
        return chain[-1].position if chain else 0

    def line_metas(self) -> dict[TaskId, CheckpointMeta]:
        """The last line decided."""
        return {t: c[-1] if c else initial_meta(t) for t, c in self.line.items()}

    def ask(self, intent: Intent) -> None:
        """Decide this as soon as possible."""
        if intent.begins_epoch:
            self.waiting = []  # a line to commit is behind the line of the rollback, or undone by it
        elif self.waiting and not self.waiting[-1].begins_epoch:
            self.waiting.pop()
        self.waiting.append(intent)
        if self.writing is None:
            self._write_next()

    def _write_next(self) -> None:
        if not self.waiting:
            return
        intent = self.waiting.pop(0)
        decision = self._compose(intent)
        self.writing = (intent, decision)
        self._write(Ticket("decision", decision.epoch, None, decision.number))

    def _compose(self, intent: Intent) -> Decision:
        number = self.number + 1
        whole = number % WHOLE_EVERY == 1
        changed = {t: chain for t, chain in intent.line.items() if self.line.get(t) != chain}
        public, held = self._output(intent, moved=bool(changed))
        manifest = self.redo or Manifest(self.manifest + 1 if public else self.manifest, public)
        return Decision(
            number,
            self.author,
            self.job.deployment.fingerprint,
            intent.epoch,
            dict(intent.incarnations),
            whole,
            dict(intent.line) if whole else changed,
            intent.memo,
            manifest,
            held,
        )

    def _output(self, intent: Intent, *, moved: bool) -> tuple[Extents, Extents]:
        """What becomes public with this decision, and what is held for the next line."""
        fresh = self._extents(intent.line)
        if any(self._position(t, c) < self.covered.get(t, 0) for t, c in intent.line.items()):
            return {}, {}  # what is held belongs to the line that is given up
        if self.job.settings.publish_lag == 0:
            return fresh, {}
        if intent.flush:
            return self.held, {}
        return (self.held, fresh) if moved else ({}, self.held)

    def _extents(self, line: dict[TaskId, Chain]) -> dict[TaskId, Extent]:
        extents = {}
        for task, chain in line.items():
            start = self.covered.get(task, 0)
            if chain and self.job.protocol.checkpoints and chain[-1].position > start:
                meta = chain[-1]
                file = Life(task, meta.epoch, meta.incarnation).name
                extents[task] = Extent(file, start, meta.position)
        return extents

    def _write(self, ticket: Ticket) -> None:
        assert self.writing is not None
        _, decision = self.writing
        if ticket.kind == "decision":
            self.shell.decide(ticket, decision_key(decision.number), encode(decision))
        else:
            self.shell.publish(ticket, decision.manifest.number, decision.manifest.extents)

    def done(self, ticket: Ticket) -> None:
        """A write has succeeded."""
        if self.writing is None:
            return
        _, decision = self.writing
        if ticket.kind == "decision" and decision.manifest.extents:
            self._write(Ticket("manifest", decision.epoch, None, decision.manifest.number))
            return
        intent, decision = self.writing
        self.writing = None
        self.number = decision.number
        self.redo = None
        if self.line != intent.line:
            back = any(is_behind(chain, self.line.get(t, ())) for t, chain in intent.line.items())
            self.previous = intent.line if back else self.line
            self.line = intent.line
        if self.job.settings.publish_lag == 0 or intent.flush:
            self.published = self.line
        else:
            self.published = self.previous
        self.manifest = decision.manifest.number
        self.held = dict(decision.held)
        self.covered = {t: self._position(t, chain) for t, chain in self.line.items()}
        self.on_decided(intent)
        if self.writing is None:
            self._write_next()

    def failed(self, ticket: Ticket) -> None:
        """A write has failed, or may have: make it again; it is the same write."""
        self.shell.set_alarm(RetryAlarm(ticket), self.job.settings.retry_ms)

    def retry(self, ticket: Ticket) -> None:
        """The time has come to try again."""
        if self.writing is not None and ticket.number in (
            self.writing[1].number,
            self.writing[1].manifest.number,
        ):
            self._write(ticket)

    def conflict(self, ticket: Ticket, found: bytes) -> None:
        """The number is taken: by our own write that came through unnoticed, or by another's."""
        if self.writing is not None and found == encode(self.writing[1]):
            self.done(ticket)
        else:
            self.on_deposed()


def is_behind(chain: Chain, than: Chain) -> bool:
    """Whether a checkpoint is older than another of the same task."""
    number = chain[-1].checkpoint if chain else INITIAL
    return number < (than[-1].checkpoint if than else INITIAL)
