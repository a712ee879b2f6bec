"""Invariants about who may write: one coordinator at a time, which knows all that was decided.

Like those in `invariants.py` they are named functions that raise `InvariantBroken`. What they compare with
is what the simulated storage was given (`SimStorage.ledger`), not what can still be read of it.
"""

from collections.abc import Iterator, Mapping

from snapline.engine.coordinator.anchor import signposts
from snapline.engine.coordinator.ledger import Decision, decision_number
from snapline.engine.slot.task import Task
from snapline.errors import StorageError
from snapline.ids import INITIAL, ChannelId, CheckpointNo, Seq
from snapline.sim.watch.account import RunAccount
from snapline.sim.watch.invariants import broken
from snapline.sim.world.world import World


def resume_goes_on_at_the_last_decision(run: RunAccount, past: Decision | None) -> None:
    """Whoever resumes goes on at the last decision that was ever durable, or not at all."""
    found, last = past.number if past else 0, run.world.storage.last_decision
    if found != last:
        broken(
            "resume_goes_on_at_the_last_decision",
            f"the run is resumed at decision {found}, but decision {last} was made",
        )


def deposed_coordinator_ends_nothing(run: RunAccount, author: str) -> None:
    """The run is ended by the coordinator that made the last decision, never by one that it deposed."""
    storage = run.world.storage
    last = storage.ledger.get(storage.last_decision)
    if last is not None and last.author != author:
        broken(
            "deposed_coordinator_ends_nothing",
            f"{author} ends the run, but decision {last.number} was made by {last.author}",
        )


def rival(world: World) -> str | None:
    """Why nobody can judge what was put out more than once, if two coordinators ran the job to its end.

    One that was paused learns that another has taken over when it next decides something. Where nothing is
    ever decided, and output is public as it is written, each of the two puts out everything.
    """
    lives = world.processes.values()
    still = any(life.alive and life.boss is not world.coordinator for life in lives)
    if world.rivals or still:
        return (
            "a paused coordinator never learnt that another had taken over, because it had nothing to "
            "decide: both ran the job to its end"
        )
    return None


def line_holds_everything(run: RunAccount) -> None:
    """A run stops, and a slot leaves, with a line that holds all that tasks sent, received and wrote."""
    line = run.lines[-1].checkpoints if run.lines else {}
    for task in _tasks(run.world):
        meta = run.metas.get((task.life.task, line.get(task.life.task, INITIAL)))
        held = ({}, {}, 0) if meta is None else (meta.sent, meta.received, meta.position)
        done = (_counted(task.sent), _counted(task.received), task.rows)
        if (_counted(held[0]), _counted(held[1]), held[2]) != done:
            story = (
                f"{task.life.task} has sent, received and written {done}, and its line has {held}"
            )
            broken("line_holds_everything", story)


def all_output_is_public(run: RunAccount) -> None:
    """All that was written is public when a run has stopped."""
    for task in _tasks(run.world):
        if run.public.get(task.life.task, 0) != task.rows:
            broken("all_output_is_public", f"not all rows of {task.life.task} are public")


def _tasks(world: World) -> Iterator[Task]:
    """The tasks of the newest life of every slot."""
    for process in filter(None, map(world.current, world.job.slots)):
        yield from process.engine.tasks.values()


def _counted(numbers: Mapping[ChannelId, Seq]) -> dict[ChannelId, Seq]:
    """Counters without those that are still at zero."""
    return {channel: seq for channel, seq in numbers.items() if seq}


def what_is_kept_is_not_deleted(run: RunAccount, key: str) -> None:
    """No coordinator, deposed or not, deletes a snapshot that one of the kept lines needs."""
    task, checkpoint = run.stored.get(key, (None, INITIAL))
    if task is None:
        return  # it never counted, so no line can need it
    for line in run.lines:
        needed: CheckpointNo | None = line.checkpoints[task]
        while needed is not None and needed > checkpoint:
            meta = run.metas.get((task, needed))
            needed = meta.parent if meta is not None else None
        if needed == checkpoint:
            broken(
                "what_is_kept_is_not_deleted",
                f"{key} is deleted, but the line of decision {run.decisions} needs it",
            )


def what_is_needed_of_the_ledger_is_not_deleted(run: RunAccount, key: str) -> None:
    """A decision is deleted only below a durable anchor, and never if it leads to the end."""
    number, storage = decision_number(key), run.world.storage
    if number is None:
        return
    last = storage.ledger[storage.last_decision]
    leads = number in signposts(last.number) or not number & (number - 1)
    if number >= last.anchor.number or leads:
        broken(
            "what_is_needed_of_the_ledger_is_not_deleted",
            f"decision {number} is deleted, but the ledger is kept from {last.anchor.number} on, and "
            f"ends at {last.number}",
        )
    run.stats["decisions collected"] += 1


def lost_slot_is_replaced(world: World) -> None:
    """A slot that is gone gets a new process, also if the first one that is started for it fails."""
    engine = world.coordinator.engine
    for slot in world.job.slots:
        if slot not in engine.members.registered and not engine.ended:
            broken(
                "lost_slot_is_replaced",
                f"slot {slot} has no process, and nobody will start another one",
            )


def public_output_is_one_chain(run: RunAccount) -> str | None:
    """Every manifest that was decided can be read, once, and each goes on where the one before it ended.

    Returns the problem that ends the run if a fault has damaged the manifests; else raises.
    """
    storage = run.world.storage
    last = storage.ledger.get(storage.last_decision)
    try:
        storage.outlet.require_all(last.published if last is not None else 0)
    except StorageError as error:
        if not run.stats["damaged"]:
            broken("public_output_is_one_chain", str(error))
        return f"the public output cannot be read: {error}"
    return None
