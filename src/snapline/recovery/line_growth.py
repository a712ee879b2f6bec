"""How the largest line grows when checkpoints are added, without looking at the whole job again.

A checkpoint may join the line together with all that it requires: for every input i->j with
`received` = r, the first checkpoint of i that has sent r, and in turn what that one requires.
Requirements only grow along a task's history, so the first checkpoint beyond the line decides for all
later ones of its task; only that one, and what it requires, is ever looked at.

A *claim* is one checkpoint that wants to join, or several that require each other in a circle and can
only join together. A claim checks its requirements one by one and stops at the first that is not met:

- no checkpoint of i has sent r yet: it waits until i adds one that has;
- the one that has is itself not on the line: it waits for that checkpoint's claim.

Invariant 1: a claim waits for at most one thing, and goes on checking where it stopped; so each input of
a checkpoint is checked about once, however often others had to be waited for.
Invariant 2: claims never wait in a circle; a claim about to close one absorbs all claims on it instead.
Hence every chain of waiting ends at a task that has not yet sent enough in any checkpoint, and what
waits cannot join: the line is always the largest.
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field

from snapline.core.messages import CheckpointMeta
from snapline.core.topology import Channel, Topology
from snapline.ids import ChannelId, CheckpointNo, Seq, TaskId


@dataclass(slots=True)
class TaskHistory:
    """The known checkpoints of a task, oldest first, and which of them is on the line."""

    metas: list[CheckpointMeta]
    at: int = 0

    @property
    def on_line(self) -> CheckpointMeta:
        """The checkpoint on the line."""
        return self.metas[self.at]

    @property
    def ahead(self) -> int:
        """How many checkpoints the task has beyond the line."""
        return len(self.metas) - 1 - self.at

    def position(self, checkpoint: CheckpointNo) -> int:
        """The position in the history at which a checkpoint with this number is, or would be inserted."""
        return bisect_left(self.metas, checkpoint, key=lambda meta: meta.checkpoint)

    def first_that_sent(self, channel: ChannelId, seq: Seq) -> CheckpointMeta | None:
        """The oldest checkpoint beyond the line that has sent this message."""
        metas = self.metas
        first = bisect_left(metas, seq, lo=self.at + 1, key=lambda meta: meta.sent.get(channel, 0))
        return metas[first] if first < len(metas) else None


@dataclass(slots=True)
class _Check:
    """How far the requirements of one checkpoint were checked: those before `next_input` are met."""

    meta: CheckpointMeta
    next_input: int = 0


@dataclass(slots=True, eq=False)
class _Claim:
    """Checkpoints that join the line together."""

    members: list[CheckpointMeta]
    checks: list[_Check]  #: the checks that are not finished; the last one is being made
    waits_for: "_Claim | None" = None
    waiters: "list[_Claim]" = field(default_factory=list)  #: the claims that wait for this one
    absorbed_by: "_Claim | None" = None

    def final(self) -> "_Claim":
        """The claim that this one is now part of; itself if it was not absorbed."""
        claim = self
        while claim.absorbed_by is not None:
            claim = claim.absorbed_by
        return claim

    def absorb(self, other: "_Claim") -> None:
        """Take over the checkpoints, the open checks and the waiters of another claim."""
        other.absorbed_by = self
        self.members += other.members
        self.checks += other.checks
        self.waiters += other.waiters


class LineGrowth:
    """Moves `at` of the histories, which it shares with its owner, up to the largest line.

    It must be begun anew when checkpoints beyond the line are taken out or put in between others.
    """

    def __init__(self, topology: Topology, histories: Mapping[TaskId, TaskHistory]) -> None:
        self._inputs = topology.inputs
        self._histories = histories
        self._claims: dict[TaskId, dict[CheckpointNo, _Claim]] = {t: {} for t in topology.tasks}
        #: per sender, the claims that wait until it has a checkpoint that has sent a certain message
        self._unsent: dict[TaskId, list[tuple[ChannelId, Seq, _Claim]]] = {
            task: [] for task in topology.tasks
        }
        self._runnable: list[_Claim] = []
        self._moved = False

    def begin(self) -> bool:
        """Try to move the line for every task once. True if it moved."""
        for task in self._histories:
            self._claim_next(task)
        return self._run()

    def added(self, meta: CheckpointMeta) -> bool:
        """The newest checkpoint of a task was appended to its history. True if the line moved."""
        waiting = self._unsent[meta.task]
        self._unsent[meta.task] = []
        for channel, seq, claim in waiting:
            if meta.sent.get(channel, 0) >= seq:
                self._runnable.append(claim)
            else:
                self._unsent[meta.task].append((channel, seq, claim))
        self._claim_next(meta.task)
        return self._run()

    def _run(self) -> bool:
        self._moved = False
        while self._runnable:
            self._proceed(self._runnable.pop().final())
        return self._moved

    def _claim_next(self, task: TaskId) -> None:
        history = self._histories[task]
        if history.ahead:
            self._claim(history.metas[history.at + 1])

    def _claim(self, meta: CheckpointMeta) -> _Claim:
        claim = self._claims[meta.task].get(meta.checkpoint)
        if claim is None:
            claim = _Claim([meta], [_Check(meta)])
            self._claims[meta.task][meta.checkpoint] = claim
            self._runnable.append(claim)
        return claim.final()

    def _proceed(self, claim: _Claim) -> None:
        """Go on checking until the claim joins the line or has to wait."""
        while claim.checks:
            check = claim.checks[-1]
            unmet = self._next_unmet(check)
            if unmet is None:
                claim.checks.pop()
                continue
            channel, seq = unmet
            required = self._histories[channel.source].first_that_sent(channel.id, seq)
            if required is None:
                self._unsent[channel.source].append((channel.id, seq, claim))
                return
            other = self._claim(required)
            if other is not claim and not self._close_circle(claim, other):
                claim.waits_for = other
                other.waiters.append(claim)
                return
            check.next_input += 1  # that claim is part of this one now, so both will join together
        self._join(claim)

    def _next_unmet(self, check: _Check) -> tuple[Channel, Seq] | None:
        """The next input on which the checkpoint received more than the line has sent."""
        inputs, received = self._inputs[check.meta.task], check.meta.received
        while check.next_input < len(inputs):
            channel = inputs[check.next_input]
            seq = received.get(channel.id, 0)
            if seq > self._histories[channel.source].on_line.sent.get(channel.id, 0):
                return channel, seq
            check.next_input += 1
        return None

    def _close_circle(self, claim: _Claim, other: _Claim) -> bool:
        """If `other` waits, however indirectly, for `claim`, make all on the way one claim."""
        circle = [other]
        while (following := circle[-1].waits_for) is not None:
            following = following.final()
            if following is claim:
                for waiting in circle:
                    claim.absorb(waiting)
                return True
            circle.append(following)
        return False

    def _join(self, claim: _Claim) -> None:
        for meta in claim.members:
            del self._claims[meta.task][meta.checkpoint]
            history = self._histories[meta.task]
            position = history.position(meta.checkpoint)
            if position > history.at:
                history.at = position
                self._moved = True
                self._claim_next(meta.task)
        for waiter in claim.waiters:
            if waiter.absorbed_by is None:  # else it was part of this claim
                waiter.waits_for = None
                self._runnable.append(waiter)
