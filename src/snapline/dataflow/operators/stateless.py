"""Operators without state: map, filter, flat_map, and the same per record for convenience."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from snapline.batch import Array, Batch
from snapline.dataflow.operators.guard import check_batch
from snapline.dataflow.operators.known import Known
from snapline.dataflow.operators.operator import IN, OUT, Operator, Outputs
from snapline.wording import plural

Record: TypeAlias = Mapping[str, Any]
RecordFunction: TypeAlias = Callable[[dict[str, Any]], Record | Sequence[Record] | None]


class Map(Operator):
    """Replaces a batch by what a function makes of it; an empty result is no output. Also for flat_map."""

    def __init__(self, function: Callable[[Batch], Batch]) -> None:
        self.function = function

    def process(self, port: str, batch: Batch) -> Outputs:
        """Apply the function."""
        result = self.function(batch)
        check_batch(result, "the function returned")
        return ((OUT, result),) if result.length else ()


class Filter(Operator):
    """Keeps the records under the mask that a function computes."""

    def __init__(self, function: Callable[[Batch], Array]) -> None:
        self.function = function

    def known_columns(self, output: str, given: Mapping[str, Known]) -> Known:
        """The columns stay as they are."""
        return given[IN]

    def process(self, port: str, batch: Batch) -> Outputs:
        """Keep the records under the mask; a batch of which all records stay is not copied."""
        mask = self.function(batch)
        if not (
            isinstance(mask, np.ndarray)
            and mask.dtype == np.bool_
            and mask.shape == (batch.length,)
        ):
            raise TypeError(
                f"the function returned {mask!r:.60} for {plural(batch.length, 'record')}: it must return "
                "an array with one bool for each"
            )
        if mask.all():
            return ((OUT, batch),)
        return ((OUT, batch.take(mask)),) if mask.any() else ()


class MapRecords(Operator):
    """Calls a function per record: it returns a record, several, or None. Slow but convenient."""

    def __init__(self, function: RecordFunction) -> None:
        self.function = function

    def process(self, port: str, batch: Batch) -> Outputs:
        """Apply the function to every record."""
        names = tuple(batch.columns)
        records: list[Record] = []
        for row in batch.rows():
            result = self.function(dict(zip(names, row, strict=True)))
            # A dict is the usual case and is checked first: isinstance of Mapping takes ten times as long.
            if type(result) is dict or isinstance(result, Mapping):
                records.append(result)
            elif isinstance(result, list | tuple):
                records.extend(result)
            elif result is not None:
                raise TypeError(f"the function returned {result!r:.60}: not a dict, a list or None")
        if not records:
            return ()
        try:
            made = Batch.of(**{name: [record[name] for record in records] for name in records[0]})
        except (TypeError, KeyError, ValueError) as error:
            raise TypeError(_differing(records)) from error
        check_batch(made, "the function's records make")
        return ((OUT, made),)


def _differing(records: Sequence[Record]) -> str:
    """A sentence on why these records do not make columns."""
    for record in records:
        if not isinstance(record, Mapping):
            return f"the function returned a list with {record!r:.60}, which is not a dict"
        if record.keys() != records[0].keys():
            first, other = ", ".join(map(str, records[0])), ", ".join(map(str, record))
            return f"the function returned records with the fields {first}, and one with {other}"
    return "the function returned records whose values are not alike: a column has one kind"
