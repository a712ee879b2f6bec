"""Makes decisions durable, one after the other, and publishes what they cover.

The order is the guarantee: the decision is durable, THEN its output is published, THEN the coordinator acts
on it (deletes garbage, lets slots restore), and old decisions are deleted that it declares collected. What
is asked for while a write is under way waits; of several commits that wait only the last is written,
because a line covers all lines before it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from snapline.core.messages import CheckpointMeta, RecoveryLine, initial_meta
from snapline.engine.coordinator.anchor import FIRST, Anchor
from snapline.engine.coordinator.ledger import (
    Chain,
    Decision,
    Held,
    Manifest,
    decision_key,
    encode,
)
from snapline.engine.job import Job
from snapline.engine.shell import CoordinatorShell, RetryAlarm, Ticket
from snapline.ids import INITIAL, Epoch, Incarnation, SlotId, TaskId, checkpoint_label
from snapline.recovery.kept_lines import KeptLines, is_behind
from snapline.storage.api import Extent, Life
from snapline.storage.codec import digest_of

Chains: TypeAlias = dict[TaskId, Chain]

_NONE = (0, "")

DELETED_AT_ONCE = 4
"""How many old decisions are deleted after each new one, so that none has to wait long for its write."""


def line_of(chains: Chains) -> RecoveryLine:
    """The line at the ends of these chains, as checkpoint numbers."""
    return RecoveryLine({t: c[-1].checkpoint if c else INITIAL for t, c in chains.items()})


@dataclass(slots=True)
class Intent:
    """Something to decide: a line to commit, or an epoch to begin at a line."""

    chains: Chains
    epoch: Epoch
    incarnations: dict[SlotId, Incarnation]
    memo: bytes
    begins_epoch: bool
    flush: bool = False  # publish what is held back, too: the job ends


class Decider:
    """Writes the ledger: composes decisions, makes them durable, and publishes what they cover."""

    def __init__(
        self,
        job: Job,
        shell: CoordinatorShell,
        author: str,
        on_decided: Callable[[Intent], None],
        on_deposed: Callable[[], None],
    ) -> None:
        self.job = job
        self.shell = shell
        self.author = author
        self.on_decided = on_decided
        self.on_deposed = on_deposed
        self.number = 0  #: the number of the last decision that is durable ...
        self.digest = ""  #: ... and its digest, which the next one names
        self.chains: Chains = dict.fromkeys(job.topology.tasks, ())  #: of the last line decided
        self.kept = KeptLines(line_of(self.chains), job.options.kept_lines)
        self.unreadable = ""  #: the object that a slot last could not read, for messages
        self.flushed: RecoveryLine | None = None  #: the line at which all held output was published
        self.manifest = 0  #: number of the last manifest
        self.public: dict[TaskId, int] = {}  #: rows in manifests, per sink task
        self.held: tuple[Held, ...] = ()  #: output that waits for a later line, oldest first
        #: manifests that an earlier coordinator may have died before publishing
        self.redo: tuple[Manifest, ...] = ()
        self.waiting: list[Intent] = []
        self.writing: Writing | None = None
        self.over = False  #: whether this coordinator decides nothing more
        self.anchor = FIRST  #: from which decision on the ledger is kept
        self.doomed: list[int] = []  #: decisions below it that are still to be deleted
        #: the kept lines, each with the first decision that has it (0: an earlier coordinator's), and how
        #: many manifests were public then
        self.since = [(self.kept.newer, 0, 0)]
        self.wholes: list[
            tuple[int, str]
        ] = []  #: own whole decisions that are kept: number, digest

    def resume(self, past: Decision) -> None:
        """Go on after the last decision of an earlier coordinator."""
        self.number, self.digest = past.number, past.digest
        self.chains = dict(past.chains)
        self.kept = KeptLines(line_of(self.chains), self.job.options.kept_lines)
        self.manifest = past.published
        self.held = past.held
        self.redo = past.manifests
        self.since = [(self.kept.newer, 0, past.published)]
        self.anchor = past.anchor
        self.doomed = past.anchor.doomed  # the one before may have died before it deleted them
        for task, chain in self.chains.items():
            first = [h.extents[task].start for h in self.held if task in h.extents]
            self.public[task] = min(first, default=chain[-1].position if chain else 0)

    @property
    def published_line(self) -> RecoveryLine:
        """The line whose output is all public: no rollback may go behind it."""
        lag = self.job.settings.publish_lag
        if not lag:
            return line_of(self.chains)
        public = self.kept.before(lag)
        if self.flushed is not None and is_behind(public, self.flushed):
            return self.flushed
        return public

    def objection(self, line: RecoveryLine) -> str | None:
        """Why the job cannot go back to a line; None if it can. Published output is never taken back."""
        published = self.published_line.checkpoints
        for task, number in line.checkpoints.items():
            if number < published[task]:
                lost = f" (object {self.unreadable})" if self.unreadable else ""
                return (
                    f"the published line is damaged{lost}: {task} could only go back to checkpoint "
                    f"{checkpoint_label(number)}, and output that was published already would come again"
                )
        return None

    def line_metas(self) -> dict[TaskId, CheckpointMeta]:
        """The checkpoints of the last line decided."""
        return {t: c[-1] if c else initial_meta(t) for t, c in self.chains.items()}

    def held_files(self) -> set[str] | None:
        """The files of which rows are decided, and not public yet; None if all output is public at once."""
        if self.job.protocol.publishes_at_once:
            return None
        return {extent.file for held in self.held for extent in held.extents.values()}

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
        if self.waiting:
            intent = self.waiting.pop(0)
            self.writing = Writing(intent, self._compose(intent))
            self._write(self.writing.ticket())

    def _compose(self, intent: Intent) -> Decision:
        line, before = line_of(intent.chains), line_of(self.chains)
        if self.job.protocol.publishes_at_once:
            self.kept = KeptLines(line)  # no rollback of all ever goes behind it
        elif is_behind(line, before):
            self.kept.go_back(line)  # output held for a line that is given up is never published
            self.held = tuple(held for held in self.held if not is_behind(line, held.line))
        else:
            self.kept.advance(line)
        held = self.held
        if fresh := self._extents(intent.chains):
            held = (*held, Held(line, fresh))
        lag = self.job.settings.publish_lag
        at_once, public = lag == 0 or intent.flush, self.kept.before(lag)
        due = [h for h in held if at_once or not is_behind(public, h.line)]
        manifests = tuple(
            Manifest(number, h.extents) for number, h in enumerate(due, start=self.manifest + 1)
        )
        number = self.number + 1
        # The first one of a coordinator is whole, so that all before it may be collected some day.
        whole = number % self.job.settings.whole_every == 1 or not self.wholes
        changed = {t: c for t, c in intent.chains.items() if self.chains[t] != c}
        return Decision(
            number,
            self.author,
            self.job.deployment.fingerprint,
            intent.epoch,
            dict(intent.incarnations),
            whole,
            dict(intent.chains) if whole else changed,
            intent.memo,
            self.redo + manifests,
            self.manifest + len(manifests),
            held[len(due) :],
            self.job.run,
            self.digest,
            anchor=self._anchor(number, self.manifest + len(manifests)),
            lines=tuple(self.kept.lines) if whole else (),
        )

    def _anchor(self, number: int, published: int) -> Anchor:
        """From where on the ledger is kept once decision `number` is durable.

        That is the last whole decision before all that tell of kept lines. While decisions below the last
        anchor are still to be deleted, it stays: then a successor knows where to go on deleting.
        """
        kept = self.kept.lines
        known = [since for since in self.since if any(since[0] is k for k in kept)]
        lines = [line for line, _, _ in known]
        fresh = [(k, number, published) for k in kept if not any(k is line for line in lines)]
        self.since = [*known, *fresh]
        oldest = min(since for _, since, _ in self.since)
        number, digest = next((w for w in reversed(self.wholes) if w[0] <= oldest), _NONE)
        if self.doomed or number <= self.anchor.number:
            return self.anchor
        return Anchor(number, digest, cleared=self.anchor.number)

    def _delete_some(self) -> None:
        """Delete some of the decisions that a durable decision has declared collected."""
        now, self.doomed = self.doomed[:DELETED_AT_ONCE], self.doomed[DELETED_AT_ONCE:]
        for number in now:
            self.shell.delete(decision_key(number))

    def _extents(self, chains: Chains) -> dict[TaskId, Extent]:
        """The rows of this line that are neither public nor held."""
        if self.job.protocol.publishes_at_once:
            return {}
        covered = dict(self.public)
        for held in self.held:
            covered.update({task: extent.stop for task, extent in held.extents.items()})
        extents = {}
        for task, chain in chains.items():
            if chain and chain[-1].position > covered.get(task, 0):
                # All these rows are in one file: an epoch begins with a new file and a decision,
                # which covers what the files before it hold.
                meta = chain[-1]
                file = Life(task, meta.epoch, meta.incarnation).name
                extents[task] = Extent(file, covered.get(task, 0), meta.position)
        return extents

    def _write(self, ticket: Ticket) -> None:
        assert self.writing is not None
        decision = self.writing.decision
        if ticket.kind == "decision":
            self.shell.decide(ticket, decision_key(decision.number), self.writing.data)
        else:
            manifest = self.writing.unpublished[0]
            self.shell.publish(ticket, manifest.number, manifest.extents)

    def done(self, ticket: Ticket) -> None:
        """Go on after a write that has succeeded: with a manifest, or by acting on the decision."""
        if self.over or self.writing is None or ticket != self.writing.ticket():
            return
        self.writing.step()
        if not self.writing.complete:
            self._write(self.writing.ticket())
            return
        intent, decision = self.writing.intent, self.writing.decision
        self.number, self.digest = decision.number, digest_of(self.writing.data)
        self.writing = None
        self.chains = intent.chains
        if intent.flush:
            self.flushed = line_of(intent.chains)
        self.manifest = decision.published
        self.held = decision.held
        self.redo = ()
        if decision.whole:
            self.wholes.append((self.number, self.digest))
        if decision.anchor != self.anchor:
            self.anchor, self.doomed = decision.anchor, decision.anchor.doomed
            self.wholes = [whole for whole in self.wholes if whole[0] >= self.anchor.number]
        for manifest in decision.manifests:
            self.public.update({task: extent.stop for task, extent in manifest.extents.items()})
        self.on_decided(intent)
        self._delete_some()
        if through := min(public for _, _, public in self.since):
            self.shell.compact(through)  # no kept line ends before these manifests
        if self.writing is None:
            self._write_next()

    def failed(self, ticket: Ticket) -> None:
        """Have a write made again that failed, or may have; the same write twice does no harm."""
        if not self.over:
            self.shell.set_alarm(RetryAlarm(ticket), self.job.settings.retry_ms)

    def retry(self, ticket: Ticket) -> None:
        """Make a failed write again, if it is still the one under way."""
        if self.writing is not None and ticket == self.writing.ticket():
            self._write(ticket)

    def conflict(self, ticket: Ticket, found: bytes) -> None:
        """Find out who has taken the number: a write of ours that seemed to fail, or another author."""
        if self.writing is not None and found == self.writing.data:
            self.done(ticket)
        elif not self.over:
            self.on_deposed()


class Writing:
    """A decision on its way: first the decision itself, then its manifests, one by one."""

    def __init__(self, intent: Intent, decision: Decision) -> None:
        self.intent = intent
        self.decision = decision
        self.data = encode(decision)
        self.durable = False
        self.unpublished = list(decision.manifests)

    def ticket(self) -> Ticket:
        """The write that is under way."""
        decision = self.decision
        if not self.durable:
            return Ticket("decision", decision.epoch, None, decision.number)
        return Ticket("manifest", decision.epoch, None, self.unpublished[0].number)

    def step(self) -> None:
        """Go on to the next write: the one under way has succeeded."""
        if self.durable:
            self.unpublished.pop(0)
        self.durable = True

    @property
    def complete(self) -> bool:
        """Whether nothing is left to write."""
        return self.durable and not self.unpublished
