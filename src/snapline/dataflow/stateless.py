"""Operators without state: map, filter, flat_map, and the same per record for convenience."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from snapline.batch import Array, Batch
from snapline.dataflow.operator import OUT, Operator, Outputs

Record: TypeAlias = Mapping[str, Any]
RecordFunction: TypeAlias = Callable[[dict[str, Any]], Record | Sequence[Record] | None]


class Map(Operator):
    """Puts a function of a batch in its place; an empty result is no output. Also serves flat_map."""

    def __init__(self, function: Callable[[Batch], Batch]) -> None:
        self._function = function

    def process(self, port: str, batch: Batch) -> Outputs:
        """Apply the function."""
        result = self._function(batch)
        return ((OUT, result),) if result.length else ()


class Filter(Operator):
    """Keeps the records under the mask that a function computes."""

    def __init__(self, function: Callable[[Batch], Array]) -> None:
        self._function = function

    def process(self, port: str, batch: Batch) -> Outputs:
        """Keep what the mask keeps; a batch that stays whole is not copied."""
        mask = self._function(batch)
        if mask.all():
            return ((OUT, batch),)
        return ((OUT, batch.take(mask)),) if mask.any() else ()


class MapRecords(Operator):
    """Calls a function per record: it returns a record, several, or None. Slow but convenient."""

    def __init__(self, function: RecordFunction) -> None:
        self._function = function

    def process(self, port: str, batch: Batch) -> Outputs:
        """Apply the function to every record."""
        names = tuple(batch.columns)
        records: list[Record] = []
        for row in batch.rows():
            result = self._function(dict(zip(names, row, strict=True)))
            # The usual answer first: to ask whether it is a mapping takes ten times as long.
            if type(result) is dict or isinstance(result, Mapping):
                records.append(result)
            elif result is not None:
                records.extend(result)
        if not records:
            return ()
        columns = {name: [record[name] for record in records] for name in records[0]}
        return ((OUT, Batch.of(**columns)),)
