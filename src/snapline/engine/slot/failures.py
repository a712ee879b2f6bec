"""What is said of an operator that failed: which messages it had, and what was wrong with its output."""

from collections.abc import Sequence

from snapline.batch import Batch
from snapline.core.messages import Message
from snapline.errors import OperatorFailed
from snapline.ids import ChannelId, Seq


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
