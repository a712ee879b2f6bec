"""What must hold of groups of rows, which are stored beside the snapshots that refer to them.

Which groups a checkpoint refers to is read here from what was stored, when it counts. What the coordinator
believes about it is the engine's claim, and is held against that.
"""

from collections.abc import Iterator

from snapline.core.messages import CheckpointMeta
from snapline.engine.groups.index import Held, groups_of_chain
from snapline.engine.slot.checkpoints import CheckpointWriter, key_of
from snapline.ids import checkpoint_label
from snapline.sim.watch.account import RunAccount
from snapline.sim.watch.alone import Alone
from snapline.sim.watch.invariants import broken
from snapline.storage.codec import decode_snapshot
from snapline.wording import plural


def counted_groups_are_durable(run: RunAccount, meta: CheckpointMeta) -> None:
    """A checkpoint counts only when all groups are stored to which it refers, each with its digest."""
    store = run.world.storage.store
    before: Held = {} if meta.parent is None else run.groups.get((meta.task, meta.parent), {})
    if not before and not meta.groups:
        return
    held = groups_of_chain([decode_snapshot(store.get(key_of(meta)))], before)
    run.groups[meta.task, meta.checkpoint] = held
    run.stats["groups"] += len(held)
    label = f"checkpoint {checkpoint_label(meta.checkpoint)} of {meta.task}"
    if len(held) != meta.groups:
        story = f"{label} names {plural(len(held), 'group')} and claims {meta.groups}"
        broken("counted_groups_are_durable", story)
    for group in held.values():
        if not store.has(group.key):
            broken("counted_groups_are_durable", f"{label} counts, but {group.key} is not stored")
        if not group.digest.strip("0"):
            broken("counted_groups_are_durable", f"{label} names no digest of {group.key}")


def kept_groups_are_not_deleted(run: RunAccount, alone: Alone | None, key: str) -> None:
    """Nobody, deposed or not, deletes a group to which a checkpoint refers that is kept."""
    for meta in _decided(run, alone):
        held = run.groups.get((meta.task, meta.checkpoint), {})
        if any(group.key == key for group in held.values()):
            label = checkpoint_label(meta.checkpoint)
            story = f"{key} is deleted, but checkpoint {label} of {meta.task} refers to it"
            broken("kept_groups_are_not_deleted", story)


def kept_groups_are_there(run: RunAccount, alone: Alone | None) -> None:
    """All groups are stored to which a checkpoint refers that is kept."""
    for meta in _decided(run, alone):
        for group in run.groups.get((meta.task, meta.checkpoint), {}).values():
            if not run.world.storage.store.has(group.key):
                label = checkpoint_label(meta.checkpoint)
                broken("kept_groups_are_there", f"{group.key} of {label} of {meta.task} is gone")


def no_group_is_left_over(run: RunAccount) -> None:
    """Once garbage is collected, some checkpoint refers to every group, or one that is under way will."""
    registry = run.world.coordinator.engine.registry
    referred = {
        group.key
        for meta in _known(run)
        for group in run.groups.get((meta.task, meta.checkpoint), {}).values()
    }
    for key in sorted(registry.groups.keys() - referred):
        broken("no_group_is_left_over", f"no checkpoint refers to {key}, and it is still kept")
    for writer in _writers(run):
        book = writer.groups
        changes = [*(pending.groups for pending in writer.pending.values()), book.left]
        under_way = {group.key for change in changes for group in change.added}
        for key in book.unreported:
            if key not in under_way:
                broken("no_group_is_left_over", f"no checkpoint will ever refer to {key}")


def _decided(run: RunAccount, alone: Alone | None) -> Iterator[CheckpointMeta]:
    """The checkpoints to which a rollback may go, as far as decisions tell."""
    if alone is not None:
        yield from (m for task, known in alone.readable.items() if alone.saved(task) for m in known)
        return
    for line in run.lines:
        yield from (run.metas[task, number] for task, number in line.checkpoints.items() if number)


def _known(run: RunAccount) -> Iterator[CheckpointMeta]:
    """The checkpoints that exist for the present coordinator."""
    for known in run.world.coordinator.engine.registry.metas.values():
        yield from known.values()


def _writers(run: RunAccount) -> Iterator[CheckpointWriter]:
    """The writers of all tasks that live."""
    for slot in run.world.job.slots:
        process = run.world.current(slot)
        if process is not None and process.alive:
            yield from (task.writer for task in process.engine.tasks.values())
