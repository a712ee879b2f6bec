"""What a protocol that wants to know is told of its task's progress, and what a journal has of it."""

from types import SimpleNamespace

import pytest

from snapline.core.effects import Snapshot
from snapline.core.events import Progressed
from snapline.engine.slot.progress import tell_progress
from snapline.engine.slot.task import Task
from snapline.ids import TaskId
from snapline.storage.api import Life


def test_a_protocol_is_told_of_records_and_of_windows_that_were_closed_meanwhile():
    told = []
    operator = SimpleNamespace(windows_closed=0)
    writer = SimpleNamespace(pending={})
    task = SimpleNamespace(operator=operator, writer=writer, windows_told=0, handle=told.append)
    tell_progress(task, 5)
    tell_progress(task, 0)
    operator.windows_closed = 3
    tell_progress(task, 0)
    tell_progress(task, 0)
    operator.windows_closed = 4
    writer.pending[7] = "not durable"
    tell_progress(task, 2)
    assert told == [Progressed(5, 0, 0), Progressed(0, 3, 0), Progressed(2, 1, 1)]


@pytest.mark.parametrize("full", [True, False])
def test_a_short_journal_has_only_progress_that_led_to_something(full):
    journal, effects = [], []
    shell = SimpleNamespace(journals_messages=full, journal=journal.append, now_us=lambda: 7)
    task = SimpleNamespace(
        protocol=SimpleNamespace(handle=lambda event: tuple(effects)),
        host=SimpleNamespace(shell=shell),
        life=Life(TaskId("a/0"), 1, 1),
    )
    Task._ask(task, Progressed(5, 0, 0))
    assert len(journal) == full
    effects.append(Snapshot(1))
    Task._ask(task, Progressed(5, 1, 0))
    assert journal[-1].effects == (Snapshot(1),)
    assert len(journal) == 1 + full
