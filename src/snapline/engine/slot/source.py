"""What a slot asks about its sources: can one read without waiting, when has it more, is it at its end."""

from snapline.core.messages import END_OF_TIME
from snapline.engine.shell import NextRead, SourceAlarm
from snapline.engine.slot.task import Task
from snapline.ids import Millis


def at_hand(task: Task, now_ms: Millis) -> bool:
    """Whether a source can read its next batch without waiting; if not, an alarm says when it may."""
    assert task.plan.ingress is not None
    alarm = SourceAlarm(task.life.epoch, task.life.task)
    settings = task.job.settings
    records = settings.batch_max_records * settings.batch_growth
    wanted = NextRead(task.plan.ingress, task.offsets, records, now_ms)
    return task.host.shell.at_hand(alarm, wanted)


def next_due_ms(task: Task) -> Millis | None:
    """When a source has more to read; None at its end. It asks for times, which may have to be read."""
    ingress = task.plan.ingress
    assert ingress is not None
    times = [
        ingress.due_ms(partition, offset)
        for partition, offset in task.offsets.items()
        if (end := ingress.end(partition)) is None or offset < end
    ]
    if task.watermarks.low != END_OF_TIME and not times:
        return 0  # at its end, but it has not said so yet
    return min(times, default=None)


def is_over(task: Task) -> bool:
    """Whether a task that may be a source has no more to read, and has said so."""
    ingress = task.plan.ingress
    if ingress is None:
        return True
    return task.watermarks.low == END_OF_TIME and not any(
        (end := ingress.end(partition)) is None or offset < end
        for partition, offset in task.offsets.items()
    )
