"""How a task uses the code of a dataflow: what fails there is blamed on the operator, in its own words."""

from collections.abc import Mapping, Sequence

from snapline.batch import Batch
from snapline.core.messages import Message
from snapline.core.topology import Channel
from snapline.dataflow.operators.guard import Guard, blame
from snapline.dataflow.operators.operator import IN, Outputs
from snapline.dataflow.partition import Route, split
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


def routed(
    outputs: Outputs, routes: Sequence[Route], sent: Mapping[ChannelId, Seq], operator: str
) -> list[tuple[Channel, Batch]]:
    """The parts of all outputs with their channels; OperatorFailed if a column to cut by is missing."""
    parts: list[tuple[Channel, Batch]] = []
    for name, batch in outputs:
        if batch.length:
            for route in routes:
                if route.output == name:
                    try:
                        parts += split(route, batch, sent)
                    except KeyError as error:
                        has = ", ".join(batch.columns)
                        text = f"its output has no column {error} to key by: it has {has}"
                        raise OperatorFailed(operator, "KeyError", text) from error
    return parts


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
