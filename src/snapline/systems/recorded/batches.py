"""Recorded tables in memory, for the judge in process; string ids become numbers in the same order.

The judge knows ids as whole numbers. All strings that occur as ids, in whatever table, are put into one
dictionary, sorted by their bytes; an id is its place there, so that equal, lower and higher mean the same,
and a witness gets its string back at the end. Other strings, the resources, become codes into a dictionary
of their own: Arrow makes those many times faster than the judge could, which knows nothing of Arrow.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from snapline.batch import Batch, Column, Varlen, concat
from snapline.errors import UsageError
from snapline.storage.parquet.arrow import from_arrow
from snapline.systems.recorded.columns import is_list, is_string, is_text
from snapline.systems.recorded.tables import RecordedTable, RecordedTables, unreadable
from snapline.validate.columns import FAR, Ints
from snapline.validate.judged import Judged
from snapline.validate.sentences import WitnessEvent

ID_COLUMNS: Final = ("id", "ids", "get_ids", "post_ids")


@dataclass(frozen=True, slots=True)
class RecordedBatches:
    """The three recorded tables in memory."""

    inputs: Batch
    outputs: Batch
    late: Batch | None
    words: pa.Array | None  # the ids behind their numbers, if they are strings

    def id(self, number: int) -> int | str:
        """The id that was recorded, for the number that stands for it in the tables."""
        return number if self.words is None else str(self.words[number].as_py())

    def named(self, judged: Judged) -> Judged:
        """A judgement whose witnesses have the ids that were recorded."""
        witnesses = {
            cause: replace(witness, id=self.id(witness.id))
            if isinstance(witness.id, int)
            else witness
            for cause, witness in judged.witnesses.items()
        }
        return replace(judged, witnesses=witnesses)

    def event(self, event: WitnessEvent) -> WitnessEvent:
        """The same event, with the id that was recorded."""
        return replace(event, id=self.id(event.id)) if isinstance(event.id, int) else event


@dataclass(slots=True)
class _Loaded:
    """A table whose string ids are still strings."""

    parts: list[Batch] = field(default_factory=list)
    texts: dict[str, list[pa.Array]] = field(default_factory=dict)  # one array per file

    def strings(self) -> Iterator[pa.Array]:
        """All strings in the order of columns and files."""
        for arrays in self.texts.values():
            for array in arrays:
                yield array.flatten() if is_list(array.type) else array


def batches_of(recorded: RecordedTables) -> RecordedBatches:
    """Read all tables into memory. Raises UsageError that names the file if one cannot be read."""
    tables = [recorded.inputs, recorded.outputs, *([recorded.late] if recorded.late else [])]
    loaded = [_load(table) for table in tables]
    words: pa.Array | None = None
    codes: Iterator[Ints] = iter(())
    if any(each.texts for each in loaded):
        words, codes = _coded([array for each in loaded for array in each.strings()])
    batches = [_whole(table, each, codes) for table, each in zip(tables, loaded, strict=True)]
    if words is not None:
        _check_unique(batches[0]["id"], words)
    return RecordedBatches(batches[0], batches[1], batches[2] if recorded.late else None, words)


def _coded(strings: Sequence[pa.Array]) -> tuple[pa.Array, Iterator[Ints]]:
    """The distinct strings in order, and of each array the places of its strings among them."""
    whole = pa.chunked_array(strings, pa.large_string()).combine_chunks()
    coded = whole.dictionary_encode()
    order = pc.sort_indices(coded.dictionary).to_numpy()
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    codes = rank[coded.indices.to_numpy(zero_copy_only=False)]
    ends = np.cumsum([len(array) for array in strings])[:-1]
    return coded.dictionary.take(pa.array(order)), iter(np.split(codes, ends))


def _check_unique(ids: Ints, words: pa.Array) -> None:
    twice = np.flatnonzero(np.bincount(ids, minlength=1) > 1)
    if len(twice):
        raise UsageError(
            f"the id {words[int(twice[0])].as_py()!r} stands twice in the input: an event needs an id "
            "of its own"
        )


def _whole(table: RecordedTable, loaded: _Loaded, codes: Iterator[Ints]) -> Batch:
    columns: dict[str, Column] = {}
    for name, arrays in loaded.texts.items():
        values = np.concatenate([next(codes) for _ in arrays])
        if not is_list(table.types[name]):
            columns[name] = values
            continue
        lengths = [array.value_lengths().to_numpy(zero_copy_only=False) for array in arrays]
        offsets = np.cumsum(np.concatenate([np.zeros(1, np.int64), *lengths]), dtype=np.int64)
        columns[name] = Varlen("list", offsets, values)
    rest = concat([part for part in loaded.parts if len(part)] or loaded.parts[:1])
    return Batch({**rest.columns, **columns}, sum(table.rows))


def _load(table: RecordedTable) -> _Loaded:
    loaded = _Loaded()
    for file in table.files:
        columns = _columns(table, file)
        texts = {
            name: columns.pop(name)
            for name, type in table.types.items()
            if name in ID_COLUMNS and is_text(type)
        }
        try:
            for name, column in texts.items():
                loaded.texts.setdefault(name, []).append(_checked(name, column.combine_chunks()))
            words = {
                name: column.dictionary_encode()
                for name, column in columns.items()
                if is_string(table.types[name])
            }
            loaded.parts.append(from_arrow(pa.table({**columns, **words}).combine_chunks()))
        except UsageError as error:
            raise UsageError(f"{file}: {error}") from error
    return loaded


def _checked(name: str, array: pa.Array) -> pa.Array:
    """An array without nulls."""
    if array.null_count:
        raise UsageError(f"column '{name}' has nulls, and an event has an id: fill them")
    if is_list(array.type) and array.flatten().null_count:
        raise UsageError(f"the lists of column '{name}' hold nulls: fill them")
    return array


def _columns(table: RecordedTable, file: Path) -> dict[str, pa.ChunkedArray]:
    try:
        with parquet.ParquetFile(file) as opened:
            read = opened.read([*table.called.values()])
    except (pa.ArrowException, OSError) as error:
        raise UsageError(unreadable(file, error)) from error
    try:
        return {name: _cast(read.column(table.called[name]), t) for name, t in table.types.items()}
    except pa.ArrowInvalid as error:  # only times can be too far away for the type of the judge
        raise UsageError(f"{file}: {FAR}") from error


def _cast(column: pa.ChunkedArray, type: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_timestamp(type):
        column = pc.floor_temporal(column, unit="millisecond").cast(pa.timestamp("ms"))
    return column.cast(_plain(type))


def _plain(type: pa.DataType) -> pa.DataType:
    """The type as which the judge reads a column of this type."""
    if is_list(type):
        return pa.large_list(pa.large_string() if is_text(type) else pa.int64())
    if is_string(type):
        return pa.large_string()
    whole = pa.types.is_integer(type) or pa.types.is_timestamp(type)
    return pa.int64() if whole else type


def named_events(
    batches: RecordedBatches, found: Mapping[int, WitnessEvent]
) -> dict[int | str, WitnessEvent]:
    """Events by the ids that were recorded."""
    return {batches.id(number): batches.event(event) for number, event in found.items()}
