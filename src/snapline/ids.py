"""The types by which things of a run are named and numbered: tasks, channels, epochs, checkpoints.

Strings that identify things are distinct types, so that a task is never taken for a channel. Numbers
are aliases: they are added and compared on every message, where a type of their own would be in the way.
"""

from collections.abc import Collection, Iterable
from typing import NewType, TypeAlias

TaskId = NewType("TaskId", str)
"""One parallel instance of an operator: `count/1` is the instance of `count` in slot 1."""

ChannelId = NewType("ChannelId", str)
"""A FIFO edge between two tasks: `bids/0>count/1`, with `#port` when the port is not `in`."""

SlotId: TypeAlias = int
Seq: TypeAlias = int  # number of a message on its channel; the first is 1
Epoch: TypeAlias = int  # counts rollbacks of the job; the first is 1
Incarnation: TypeAlias = int  # counts lives of a slot; the first is 1
CheckpointNo: TypeAlias = int  # see first_checkpoint
Millis: TypeAlias = int
Micros: TypeAlias = int

INITIAL: CheckpointNo = 0
"""The checkpoint that every task has without storing anything: its initial state."""

_EPOCH_BITS = 40
_LIFE_BITS = 24
_LIVES = 1 << (_EPOCH_BITS - _LIFE_BITS)  # of a slot in one epoch
_SEQ_BITS = 32


def first_checkpoint(epoch: Epoch, life: Incarnation = 0) -> CheckpointNo:
    """The first checkpoint number of an epoch, or of a life that began within it: its slot restarted alone.

    The epoch is the upper part of the number. An epoch begins with a durable write and is never used
    twice, so neither is a checkpoint number: not after a rollback, not after a resume.
    """
    return (epoch << _EPOCH_BITS) + (life % _LIVES << _LIFE_BITS) + 1


def checkpoint_label(checkpoint: CheckpointNo) -> str:
    """A checkpoint as people read it: `2.3` is the third of epoch 2, `0` the initial state.

    `2.4.3` is the third of a life, number 4, that began in epoch 2 because its slot restarted alone.
    """
    if checkpoint == INITIAL:
        return "0"
    epoch, rest = divmod(checkpoint, 1 << _EPOCH_BITS)
    life, number = divmod(rest, 1 << _LIFE_BITS)
    return f"{epoch}.{life}.{number}" if life else f"{epoch}.{number}"


def last_seq_before(life: Incarnation) -> Seq:
    """The number behind which a life numbers its messages on channels whose numbers outlive a restart.

    Numbers of different lives of a sender differ, so a receiver can tell what it has got already.
    """
    return life << _SEQ_BITS


def same_life(one: Seq, other: Seq) -> bool:
    """Whether two messages of such a channel are from one life of their sender."""
    return one >> _SEQ_BITS == other >> _SEQ_BITS


def task_id(operator: str, index: int) -> TaskId:
    """The task of `operator` in slot `index`."""
    return TaskId(f"{operator}/{index}")


def slot_of(task: TaskId) -> SlotId:
    """The slot that hosts a task: tasks are called after their slots."""
    return int(task.rpartition("/")[2])


def operator_of(task: TaskId) -> str:
    """The operator of which a task is an instance."""
    return task.rpartition("/")[0]


def numbers_through(entries: Collection[Seq], floor: Seq, through: Seq) -> Iterable[Seq]:
    """The numbers floor < n <= through that may be among the entries, found in the shorter way."""
    if through - floor <= len(entries):
        return range(floor + 1, through + 1)
    return [seq for seq in entries if floor < seq <= through]
