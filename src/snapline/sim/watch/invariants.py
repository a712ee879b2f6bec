"""What must always hold, as named functions. Each raises `InvariantBroken` with the record concerned.

They are called by the monitor: after each step those that concern what the step touched, at decisions,
collections and publications those that concern the whole line, and at the end all that concern the run.
Where a check compares, one side is the engine's claim and the other the monitor's own account.
"""

from collections.abc import Mapping
from typing import NoReturn

from snapline.core.guarantee import Guarantee
from snapline.core.messages import CheckpointMeta, Message, initial_meta
from snapline.engine.coordinator.ledger import Manifest
from snapline.engine.slot.checkpoints import key_of
from snapline.engine.slot.task import Task
from snapline.errors import InvariantBroken, ObjectMissing
from snapline.ids import (
    INITIAL,
    ChannelId,
    CheckpointNo,
    Epoch,
    Seq,
    TaskId,
    checkpoint_label,
)
from snapline.journal.entry import Handled
from snapline.recovery.recovery_line import orphans
from snapline.recovery.replay import Origin, replay_plan
from snapline.recovery.zpaths import useless_checkpoints
from snapline.sim.watch.account import Line, RunAccount, TaskAccount
from snapline.storage.api import Extent, Life
from snapline.storage.codec import decode_snapshot
from snapline.wording import are, plural

OBSERVER = Life(TaskId("observer"), 0, 0)
"""A life that never existed: through its log one sees what is durable of all others."""


def broken(name: str, story: str) -> NoReturn:
    """Say which invariant does not hold, and why."""
    raise InvariantBroken(name, story)


# After a step.


def message_is_of_this_epoch(entry: Handled, message: Message) -> None:
    """A protocol is given only messages of its own epoch, none from before a rollback."""
    if message.epoch != entry.epoch:
        broken(
            "message_is_of_this_epoch",
            f"{entry.actor} took message {message.seq} of {message.channel} from epoch "
            f"{message.epoch} in epoch {entry.epoch}",
        )


def blocked_channel_is_not_read(entry: Handled, account: TaskAccount, message: Message) -> None:
    """A blocked channel is not read."""
    if message.channel in account.blocked:
        broken(
            "blocked_channel_is_not_read",
            f"{entry.actor} took message {message.seq} of {message.channel}, which is blocked",
        )


def messages_come_in_order(
    run: RunAccount, entry: Handled, account: TaskAccount, message: Message
) -> None:
    """On each channel, in each life, the messages come one after the other."""
    last = account.delivered.get(message.channel)
    if (
        last is not None
        and message.seq != last + 1
        and not run.world.job.protocol.publishes_at_once
    ):
        broken(
            "messages_come_in_order",
            f"{entry.actor} was given message {message.seq} of {message.channel} after {last}",
        )


def checkpoint_number_is_new(run: RunAccount, task: TaskId, checkpoint: CheckpointNo) -> None:
    """Checkpoint numbers are never used twice."""
    if (task, checkpoint) in run.taken:
        broken(
            "checkpoint_number_is_new",
            f"{task} took checkpoint {checkpoint_label(checkpoint)} twice",
        )


def replay_is_faithful(run: RunAccount, message: Message) -> None:
    """A replayed message is the one that was sent in this timeline: records, header, watermark."""
    sent = run.truth[message.channel][message.seq]
    same = message.header == sent.header and message.watermark == sent.watermark
    if not same or message.batch != sent.batch:
        broken(
            "replay_is_faithful",
            f"message {message.seq} of {message.channel} was replayed with another content "
            f"than it was sent with in epoch {sent.epoch}",
        )


def channels_continue_at_the_line(
    run: RunAccount, channel: ChannelId, seq: Seq, epoch: Epoch
) -> None:
    """In an epoch each channel goes on where its receiver stands on the line, without a gap.

    First comes what is replayed, then what is sent for the first time.
    """
    if epoch != run.epoch or run.world.job.protocol.publishes_at_once:
        return
    last = run.carried.get(channel, 0)
    if seq != last + 1:
        broken(
            "channels_continue_at_the_line",
            f"{channel} goes on with message {seq} in epoch {epoch}, but {last + 1} is next",
        )
    run.carried[channel] = seq


# When a checkpoint counts.


def dead_checkpoints_do_not_count(run: RunAccount, entry: Handled, meta: CheckpointMeta) -> None:
    """No checkpoint of an epoch that is over counts, and none during a rollback."""
    if meta.epoch != entry.epoch or run.recovering:
        now = "a rollback is under way" if run.recovering else f"it is epoch {entry.epoch}"
        broken(
            "dead_checkpoints_do_not_count",
            f"checkpoint {checkpoint_label(meta.checkpoint)} of {meta.task} counts, but {now}",
        )


def checkpoints_count_in_order(run: RunAccount, meta: CheckpointMeta) -> None:
    """A checkpoint counts only after all earlier ones of its task."""
    newest = max(run.live.get(meta.task, ()), default=INITIAL)
    if meta.checkpoint <= newest:
        broken(
            "checkpoints_count_in_order",
            f"checkpoint {checkpoint_label(meta.checkpoint)} of {meta.task} counts after "
            f"{checkpoint_label(newest)}",
        )


def counted_means_durable(run: RunAccount, meta: CheckpointMeta) -> None:
    """A checkpoint counts only when its snapshot, its log and its egress are durable."""
    storage = run.world.storage
    label = f"checkpoint {checkpoint_label(meta.checkpoint)} of {meta.task}"
    if not storage.store.has(key_of(meta)):
        broken("counted_means_durable", f"{label} counts but its snapshot is not stored")
    logged = run.accounts[meta.task].logged if meta.task in run.accounts else {}
    reader = storage.logs.open(OBSERVER)
    for channel, last in logged.items():
        through = min(last, meta.sent.get(channel, 0))
        if through <= run.prunable(channel) or through not in run.truth.get(channel, ()):
            continue
        try:
            reader.read(channel, after=through - 1, through=through)
        except ObjectMissing:
            broken(
                "counted_means_durable",
                f"{label} counts but message {through} of {channel} is not in the log",
            )
    file = storage.outlet.synced(Life(meta.task, meta.epoch, meta.incarnation))
    if file is not None and file < meta.position:
        broken(
            "counted_means_durable",
            f"{label} counts at row {meta.position} but its egress is durable through {file}",
        )


def deltas_have_a_base(run: RunAccount, meta: CheckpointMeta) -> None:
    """A snapshot is full, or it builds on the one that was taken just before, and that one counts."""
    label = f"checkpoint {checkpoint_label(meta.checkpoint)} of {meta.task}"
    if meta.parent is None:
        if not decode_snapshot(run.world.storage.store.get(key_of(meta))).full:
            broken("deltas_have_a_base", f"{label} builds on nothing, but it is not full")
        return
    base = checkpoint_label(meta.parent)
    if meta.parent != run.before[meta.task, meta.checkpoint]:
        broken("deltas_have_a_base", f"{label} builds on {base}, but others were taken between")
    if (meta.task, meta.parent) not in run.metas:
        broken("deltas_have_a_base", f"{label} builds on {base}, which never counted")


def snapshot_covers_what_was_delivered(run: RunAccount, meta: CheckpointMeta) -> None:
    """A snapshot says that it holds exactly what was delivered when it was taken."""
    delivered = run.taken.get((meta.task, meta.checkpoint))
    label = f"checkpoint {checkpoint_label(meta.checkpoint)} of {meta.task}"
    if delivered is None:
        broken("snapshot_covers_what_was_delivered", f"{label} was never taken")
    for channel, seq in delivered.items():
        if meta.received.get(channel, 0) != seq:
            broken(
                "snapshot_covers_what_was_delivered",
                f"{label} claims messages through {meta.received.get(channel, 0)} of {channel}, "
                f"but {seq} was the last one delivered before it",
            )


# When a line is decided.


def decided_means_durable(run: RunAccount, number: int, epoch: Epoch, line: Line) -> None:
    """Whoever acts on a decision finds that very decision in the store."""
    decision = run.world.storage.ledger.get(number)
    if decision is None:
        broken("decided_means_durable", f"decision {number} is acted on, but it is not stored")
    chosen = {task: chain[-1].checkpoint for task, chain in decision.chains.items() if chain}
    if decision.epoch != epoch or any(line[task] != n for task, n in chosen.items()):
        broken(
            "decided_means_durable",
            f"decision {number} is acted on in epoch {epoch}, but what is stored under this number "
            f"is another one, of {decision.author} in epoch {decision.epoch}",
        )


def _metas(run: RunAccount, line: Line) -> dict[TaskId, CheckpointMeta]:
    return {task: run.metas[task, number] for task, number in line.items() if number}


def line_is_not_behind_public_output(run: RunAccount, line: Line) -> None:
    """What was published is never taken back, so no line is behind it."""
    metas = _metas(run, line)
    for task, rows in run.public.items():
        position = metas[task].position if task in metas else 0
        if position < rows:
            broken(
                "line_is_not_behind_public_output",
                f"{task} goes back to row {position}, but {plural(rows, 'row')} of it {are(rows)} public",
            )


def line_is_consistent(run: RunAccount, line: Line) -> None:
    """No message on the line was received and not sent."""
    job = run.world.job
    if job.guarantee in (Guarantee.AT_LEAST_ONCE, Guarantee.NOTHING):
        return
    for orphan in orphans(job.topology, _metas(run, line)):
        broken("line_is_consistent", f"orphans on the line: {orphan}")


def line_is_complete(run: RunAccount, line: Line) -> None:
    """All that the line needs is durable: snapshots, their bases, and what must be replayed."""
    _check_whole(run, "line_is_complete", line)


def kept_lines_are_whole(run: RunAccount) -> None:
    """Nothing that the oldest kept line or the newest line needs was deleted."""
    for line in run.lines:
        _check_whole(run, "kept_lines_are_whole", line.checkpoints)


def _check_whole(run: RunAccount, name: str, line: Line) -> None:
    world = run.world
    metas = _metas(run, line)
    for meta in metas.values():
        base: CheckpointMeta | None = meta
        while base is not None:
            if not world.storage.store.has(key_of(base)):
                label = checkpoint_label(base.checkpoint)
                broken(name, f"the snapshot of checkpoint {label} of {base.task} is gone")
            base = None if base.parent is None else run.metas[base.task, base.parent]
    if world.job.guarantee not in (Guarantee.EXACTLY_ONCE, Guarantee.AT_LEAST_ONCE):
        return
    reader = world.storage.logs.open(OBSERVER)
    for part in replay_plan(world.job.topology, metas):
        if part.origin is Origin.LOG:
            try:
                reader.read(part.channel, after=part.after, through=part.through)
            except ObjectMissing:
                broken(
                    name,
                    f"messages {part.after + 1} to {part.through} of {part.channel} are under way "
                    "across the line, but neither channel state nor the log has them: dropped",
                )


def storage_is_bounded(run: RunAccount) -> None:
    """What is kept does not grow with the run, where the protocol promises so."""
    world = run.world
    if not world.job.protocol.bounded or not world.job.protocol.saves:
        return
    options = world.job.options
    if options.every_records or options.at_window_close or options.intervals_ms:
        return  # a task may checkpoint as often as it likes while its senders do not, and the line waits
    # The kept lines, what is newer, and for each of these the deltas down to a full snapshot.
    # Forced checkpoints come in bursts, when messages that waited bring news of many others.
    more = max(0, options.kept_lines - 2)
    bound = 6 + 2 * more + (3 + more) * world.job.settings.full_every
    bound += 12 * world.job.protocol.no_useless
    registry = world.coordinator.engine.registry
    for task, known in registry.metas.items():
        if len(known) > bound:
            broken(
                "storage_is_bounded",
                f"{plural(len(known), 'checkpoint')} of {task} {are(len(known))} kept",
            )


# When all run again.


def tasks_stand_at_the_line(run: RunAccount) -> None:
    """When the slots are let go, every task is what its checkpoint on the line says."""
    world = run.world
    if world.job.protocol.publishes_at_once:
        return  # a resumed job without a line goes on at the present
    metas = _metas(run, run.lines[-1].checkpoints)
    for slot in world.job.slots:
        process = world.current(slot)
        if process is None or not process.alive:
            continue  # it died after it had acknowledged; that is for the next epoch
        for name in world.job.hosted[slot]:
            task = process.engine.tasks.get(name) if process.engine.epoch == run.epoch else None
            if task is None:
                broken("tasks_stand_at_the_line", f"{name} is not restored, but others may send")
            _check_restored(task, metas.get(name) or initial_meta(name), world.job.guarantee)


def _check_restored(task: Task, meta: CheckpointMeta, guarantee: Guarantee) -> None:
    """Compare a restored task with its checkpoint; `received` may differ unless exactly once."""
    received = meta.received if guarantee is Guarantee.EXACTLY_ONCE else task.received
    position = task.egress.position if task.egress is not None else meta.position
    claims: tuple[tuple[str, object, object], ...] = (
        ("sent", task.sent, {c: meta.sent.get(c, 0) for c in task.sent}),
        ("received", task.received, {c: received.get(c, 0) for c in task.received}),
        ("read", task.offsets, {p: meta.offsets.get(p, 0) for p in task.offsets}),
        ("written", position, meta.position),
        ("its watermark at", task.watermarks.low, meta.watermark),
    )
    for what, is_now, was in claims:
        if is_now != was:
            broken(
                "tasks_stand_at_the_line",
                f"{meta.task} goes on with {what} {is_now}, but its checkpoint "
                f"{checkpoint_label(meta.checkpoint)} has {was}",
            )


# When output becomes public.


def published_output_was_decided(
    run: RunAccount, number: int, extents: Mapping[TaskId, Extent]
) -> None:
    """Output becomes public only after the decision that covers it is durable."""
    storage = run.world.storage
    for k in range(storage.last_decision, 0, -1):
        decision = storage.ledger[k]
        if Manifest(number, dict(extents)) in decision.manifests:
            return
        if decision.published < number:
            break
    broken(
        "published_output_was_decided",
        f"manifest {number} ({', '.join(extents)}) is published, but no durable decision names it",
    )


def published_output_continues(
    run: RunAccount, number: int, extents: Mapping[TaskId, Extent]
) -> None:
    """Each row becomes public once: a manifest begins where the one before it has ended."""
    for task, extent in extents.items():
        rows = run.public.get(task, 0)
        if extent.start != rows:
            broken(
                "published_output_continues",
                f"manifest {number} publishes {task} from row {extent.start}, but {rows} are public",
            )


# At the end.


def no_checkpoint_is_useless(run: RunAccount) -> None:
    """A protocol that promises so takes no checkpoint that lies on a Z-cycle."""
    if run.world.job.guarantee is Guarantee.AT_LEAST_ONCE:
        return  # numbers are used again after a rollback, so counters do not tell intervals
    metas = [run.reported[task, n] for task, known in run.live.items() for n in known]
    useless = useless_checkpoints(run.world.job.topology, metas)
    run.stats["useless"] += len(useless)
    if useless and run.world.job.protocol.no_useless:
        task, number = useless[0]
        broken("no_checkpoint_is_useless", f"checkpoint {checkpoint_label(number)} of {task} is")
