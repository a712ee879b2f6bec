"""How far a slot has come: told to protocols that want to know, and answered to waves of counters.

The protocol of a task is told between two inputs, when all that came of the last one was sent: a checkpoint
that it asks for then is as one that a timer asks for. A protocol that does not want to know is never told,
and pays nothing.
"""

from collections.abc import Mapping
from typing import Protocol

from snapline.core.events import Progressed, TaskEvent
from snapline.dataflow.operators.operator import Operator
from snapline.engine.control import Counters
from snapline.engine.slot.channels import Inputs, Outputs
from snapline.engine.slot.checkpoints import CheckpointWriter
from snapline.engine.slot.task import Task
from snapline.ids import Epoch, TaskId


class Followed(Protocol):
    """What is needed of a task."""

    operator: Operator
    writer: CheckpointWriter
    windows_told: int  #: windows that the operator has closed, as far as the protocol knows

    def handle(self, event: TaskEvent) -> None:
        """Give an event to the protocol."""
        ...


def tell_progress(task: Followed, records: int) -> None:
    """Say that so many records were taken, unless that is nothing and no window was closed."""
    windows = task.operator.windows_closed - task.windows_told
    if records or windows:
        task.windows_told += windows
        task.handle(Progressed(records, windows, len(task.writer.pending)))


def count(
    epoch: Epoch,
    wave: int,
    tasks: Mapping[TaskId, Task],
    inputs: Inputs,
    outputs: Outputs,
    *,
    busy: bool,
) -> Counters:
    """The counters of all channels of a slot; `busy`: something is under way inside it."""
    seqs = {channel: seq for task in tasks.values() for channel, seq in task.sent.items()}
    rows = {name: t.rows for name, t in tasks.items() if not t.inputs and not t.outputs}
    return Counters(epoch, wave, dict(outputs.sent), dict(inputs.taken), seqs, busy, rows)
