"""Tells the protocol of a task what the task has done, if the protocol wants to know.

It is told between two inputs, when all that came of the last one was sent: a checkpoint that it asks for
then is as one that a timer asks for. A protocol that does not want to know is never told, and pays nothing.
"""

from typing import Protocol

from snapline.core.events import Progressed, TaskEvent
from snapline.dataflow.operators.operator import Operator
from snapline.engine.slot.checkpoints import CheckpointWriter


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
