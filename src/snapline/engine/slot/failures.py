"""What is said of an operator that failed: what it was given, and what was wrong with its output."""

from collections.abc import Sequence

from snapline.batch import Batch
from snapline.core.messages import Message
from snapline.dataflow.operators.guard import Guard, blame
from snapline.dataflow.operators.operator import IN, Outputs
from snapline.errors import OperatorFailed
from snapline.ids import ChannelId, Seq
from snapline.storage.api import Ingress


def numbers_of(messages: Sequence[Message]) -> str:
    """The messages that an operator was given, as people read it."""
    numbers: dict[ChannelId, list[Seq]] = {}
    for message in messages:
        numbers.setdefault(message.channel, []).append(message.seq)
    return " and ".join(f"{_counted(of_one)} of {channel}" for channel, of_one in numbers.items())


def _counted(numbers: Sequence[Seq]) -> str:
    first, last = numbers[0], numbers[-1]
    return f"message {first}" if first == last else f"messages {first} to {last}"


def unroutable(operator: str, error: KeyError, batch: Batch) -> OperatorFailed:
    """The error of a batch that lacks the column by which it is to be sent on."""
    text = f"its output has no column {error} to key by: it has {', '.join(batch.columns)}"
    return OperatorFailed(operator, "KeyError", text)


def read_range(
    ingress: Ingress, guard: Guard, source: str, partition: int, offset: int, stop: int
) -> Outputs:
    """What the first operator of a source makes of these records; OperatorFailed says which they were."""
    try:
        try:
            batch = ingress.read(partition, offset, stop)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise blame(source, error, ingress, "read") from error
        return guard.process(IN, batch)
    except OperatorFailed as failed:
        failed.where = f"records {offset} to {stop - 1} of partition {partition} of '{source}'"
        raise
