"""Reads a journal into the story that a space-time diagram shows.

It goes once through the entries in their order and pairs what belongs together: a message's sending
with its delivery, a snapshot with the news that it is durable, a crash with the restart. What can only
be known later is filled in when it is: at a rollback, which checkpoints are skipped and which messages
made the newest ones inconsistent.
"""

from collections.abc import Sequence

from snapline.core.effects import (
    Block,
    Commit,
    CoordinatorEffect,
    Forward,
    Rollback,
    Scope,
    Snapshot,
    TaskEffect,
    Unblock,
)
from snapline.core.events import (
    MarkerArrived,
    MessageArrived,
    SnapshotStored,
    Started,
    TasksLost,
)
from snapline.core.messages import CheckpointMeta, Marker, Message, RecoveryLine, initial_meta
from snapline.core.topology import Topology
from snapline.ids import (
    ChannelId,
    CheckpointNo,
    Epoch,
    Micros,
    Seq,
    TaskId,
    checkpoint_label,
    slot_of,
)
from snapline.journal.entry import COORDINATOR, Entry, Handled, Happened, Stamped
from snapline.journal.fault_happenings import (
    CoordinatorKilled,
    CoordinatorResumed,
    FaultBegan,
    ProcessContinued,
    ProcessKilled,
    ProcessPaused,
)
from snapline.journal.happenings import (
    JobRunning,
    MessageReplayed,
    SlotLaunched,
    SlotRestored,
    SlotRunning,
)
from snapline.journal.sentences import sentence
from snapline.report.spacetime.story import (
    Arrow,
    DrawnCheckpoint,
    Instant,
    Lane,
    Moment,
    Return,
    Span,
    Story,
    Stretch,
    Travel,
)

_RESTORING = "restoring"


def tell(entries: Sequence[Entry], topology: Topology) -> Story:
    """Read a journal whose entries are in the order of time."""
    teller = _Teller(topology)
    for entry in entries:
        teller.read(entry)
    return teller.finish()


class _Teller:
    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.story = Story()
        self.under_way: dict[tuple[ChannelId, Seq, Epoch], Arrow] = {}
        self.markers: dict[tuple[ChannelId, CheckpointNo, Epoch], Arrow] = {}
        #: the arrow of the last delivery of a number: the one that the present state contains
        self.delivered: dict[tuple[ChannelId, Seq], Arrow] = {}
        self.metas: dict[tuple[TaskId, CheckpointNo], CheckpointMeta] = {}
        self.newest: dict[TaskId, CheckpointMeta] = {t: initial_meta(t) for t in topology.tasks}
        #: spans that have begun, by what and where; a channel for what is blocked
        self.open: dict[tuple[Stretch, str], Span] = {}
        self.committed = 0  #: rows of output that the last committed line covers
        self.began = False

    def read(self, entry: Entry) -> None:
        if not self.began:
            self.story.begin_us, self.began = entry.at_us, True
        self.story.end_us = max(self.story.end_us, entry.at_us)
        match entry:
            case Stamped(at, _, _, _, channel, seq):
                self._send(Travel.MESSAGE, channel, seq, entry.epoch, at)
            case Handled(actor=actor) if actor == COORDINATOR:
                self._coordinator(entry)
            case Handled():
                self._task(entry)
            case Happened():
                self._happened(entry)

    def finish(self) -> Story:
        """Close what is still open; what a rollback overtook was lost."""
        for span in self.open.values():
            span.until_us = self.story.end_us
        for arrow in self.under_way.values():
            if any(
                arrow.sent_us <= back.at_us and arrow.channel.target in back.line.checkpoints
                for back in self.story.returns
            ):
                self._lose(arrow)
        self.story.arrows.sort(key=lambda arrow: arrow.sent_us)
        return self.story

    # Tasks.

    def _task(self, entry: Handled) -> None:
        task, at = TaskId(entry.actor), entry.at_us
        down = self.open.get((Stretch.DOWN, task))
        match entry.event:
            case Started():
                self._close(Stretch.DOWN, task, at)
            case MessageArrived(message):
                self._deliver(message, at)
            case MarkerArrived(channel, marker):
                self._take_marker(channel, marker, entry.epoch, at)
        if down and down.label == _RESTORING and not isinstance(entry.event, Started):
            down.since_us = at  # the order to go back had not reached it yet
        for effect in entry.effects:
            self._perform(task, effect, entry.epoch, at)

    def _perform(
        self, task: TaskId, effect: TaskEffect | CoordinatorEffect, epoch: Epoch, at: Micros
    ) -> None:
        match effect:
            case Snapshot(checkpoint, _, forced):
                self.story.checkpoints[task, checkpoint] = DrawnCheckpoint(
                    task, checkpoint, at, forced
                )
            case Forward(marker):
                for channel in self.topology.outputs[task]:
                    label = f"marker {checkpoint_label(marker.checkpoint)} on {channel.id}"
                    arrow = Arrow(Travel.MARKER, channel, label, at)
                    self.markers[channel.id, marker.checkpoint, epoch] = arrow
            case Block(channel_id):
                self._open(Stretch.BLOCKED, task, at, f"{channel_id} blocked", key=channel_id)
            case Unblock(channel_id):
                self._close(Stretch.BLOCKED, channel_id, at)

    def _send(self, travel: Travel, channel: ChannelId, seq: Seq, epoch: Epoch, at: Micros) -> None:
        label = f"{channel} no. {seq}, epoch {epoch}"
        before = self.under_way.get((channel, seq, epoch))
        if before is not None:  # a task that restarted alone sends its numbers again
            self._lose(before)
        arrow = Arrow(travel, self.topology.by_id[channel], label, at)
        self.under_way[channel, seq, epoch] = arrow

    def _lose(self, arrow: Arrow) -> None:
        arrow.travel = Travel.LOST
        self.story.arrows.append(arrow)

    def _deliver(self, message: Message, at: Micros) -> None:
        arrow = self.under_way.pop((message.channel, message.seq, message.epoch), None)
        if arrow is None:  # its sending lies before the beginning of the journal
            return
        arrow.received_us = at
        self.story.arrows.append(arrow)
        self.delivered[message.channel, message.seq] = arrow

    def _take_marker(self, channel: ChannelId, marker: Marker, epoch: Epoch, at: Micros) -> None:
        arrow = self.markers.pop((channel, marker.checkpoint, epoch), None)
        if arrow is not None:
            arrow.received_us = at
            self.story.arrows.append(arrow)

    # The coordinator.

    def _coordinator(self, entry: Handled) -> None:
        if isinstance(entry.event, SnapshotStored):
            self._stored(entry.event.meta, entry.at_us)
        for effect in entry.effects:
            match effect:
                case Commit(line):
                    self._commit(line, entry.at_us)
                case Rollback(line, scope):
                    self._roll_back(line, scope, entry)

    def _commit(self, line: RecoveryLine, at: Micros) -> None:
        metas = [self.metas[item] for item in line.checkpoints.items() if item in self.metas]
        rows = sum(meta.position for meta in metas)
        event = Moment(
            Instant.COMMIT, COORDINATOR, at, "line committed", max(0, rows - self.committed)
        )
        self.story.events.append(event)
        self.committed = rows

    def _stored(self, meta: CheckpointMeta, at: Micros) -> None:
        self.metas[meta.task, meta.checkpoint] = meta
        self.newest[meta.task] = meta
        checkpoint = self.story.checkpoints.get((meta.task, meta.checkpoint))
        if checkpoint is not None:
            checkpoint.stored_us = at

    def _roll_back(self, line: RecoveryLine, scope: Scope, entry: Handled) -> None:
        at = entry.at_us
        lost = entry.event.tasks if isinstance(entry.event, TasksLost) else ()
        whole = scope is Scope.ALL
        number = len(self.story.returns) + 1
        self.story.returns.append(Return(number, at, line, entry.epoch, whole, lost))
        if whole:
            self._mark_orphans()
        for checkpoint in self.story.checkpoints.values():
            kept = line.checkpoints.get(checkpoint.task)
            if kept is not None and checkpoint.checkpoint > kept and checkpoint.stored_us:
                checkpoint.skipped = True
        for task, number in line.checkpoints.items():
            self.newest[task] = self.metas.get((task, number), initial_meta(task))
            self._open(Stretch.DOWN, task, at, _RESTORING)
            for channel in self.topology.inputs[task]:
                self._close(Stretch.BLOCKED, channel.id, at)

    def _mark_orphans(self) -> None:
        """Orphans of the newest checkpoints: received in one of them, sent in none."""
        for channel in self.topology.channels:
            sent = self.newest[channel.source].sent.get(channel.id, 0)
            received = self.newest[channel.target].received.get(channel.id, 0)
            for seq in range(sent + 1, received + 1):
                arrow = self.delivered.get((channel.id, seq))
                if arrow is not None:
                    arrow.travel = Travel.ORPHAN

    # What no protocol object was told.

    def _happened(self, entry: Happened) -> None:
        at, lanes, label = entry.at_us, self._lanes(entry.actor), sentence(entry)
        match entry.what:
            case ProcessKilled() | CoordinatorKilled():
                self._kill(lanes, at, label, f"{entry.actor} killed")
            case SlotLaunched():
                for lane in lanes:
                    self._open(Stretch.DOWN, lane, at, f"{entry.actor} starting")
            case CoordinatorResumed():
                self.story.events.append(Moment(Instant.RESUMED, COORDINATOR, at, label))
                self._revive(lanes, at)
            case JobRunning():
                self._revive(self.topology.tasks, at)
            case SlotRestored() | SlotRunning():
                self._revive(lanes, at)
            case ProcessPaused():
                for lane in lanes:
                    self._open(Stretch.PAUSED, lane, at, f"{entry.actor} paused")
            case ProcessContinued():
                for lane in lanes:
                    self._close(Stretch.PAUSED, lane, at)
            case MessageReplayed(message):
                self._send(Travel.REPLAYED, message.channel, message.seq, message.epoch, at)
            case what if isinstance(what, FaultBegan):
                self.story.events += [Moment(Instant.FAULT, lane, at, label) for lane in lanes[:1]]

    def _kill(self, lanes: Sequence[Lane], at: Micros, label: str, since: str) -> None:
        for lane in lanes:
            self.story.events.append(Moment(Instant.CRASH, lane, at, label))
            self._close(Stretch.PAUSED, lane, at)
            self._close(Stretch.DOWN, lane, at)
            self._open(Stretch.DOWN, lane, at, since)
            if lane != COORDINATOR:
                for channel in self.topology.inputs[TaskId(lane)]:
                    self._close(Stretch.BLOCKED, channel.id, at)

    def _revive(self, lanes: Sequence[Lane], at: Micros) -> None:
        for lane in lanes:
            self._close(Stretch.PAUSED, lane, at)
            self._close(Stretch.DOWN, lane, at)

    def _lanes(self, actor: str) -> tuple[Lane, ...]:
        if actor.startswith("slot/"):
            slot = int(actor.removeprefix("slot/"))
            return tuple(task for task in self.topology.tasks if slot_of(task) == slot)
        return (actor,) if actor in self.topology.tasks else (COORDINATOR,)

    def _open(
        self, stretch: Stretch, lane: Lane, at: Micros, label: str, key: str | None = None
    ) -> None:
        key = lane if key is None else key
        if (stretch, key) not in self.open:
            self.open[stretch, key] = Span(stretch, lane, at, at, label)
            self.story.spans.append(self.open[stretch, key])

    def _close(self, stretch: Stretch, key: str, at: Micros) -> None:
        span = self.open.pop((stretch, key), None)
        if span is not None:
            span.until_us = at
