"""In what two outputs of one step of an operator differ, as text for people."""

from collections.abc import Sequence

import numpy as np

from snapline.batch import Batch, Column, Words
from snapline.dataflow.state.hashing import Hashes, hash_columns
from snapline.engine.reference.reference import Put


def difference(right: Put, outputs: Put) -> str | None:
    """In what two outputs of one step differ, if they do: their order is free."""
    if len(right) == len(outputs) and all(map(_equal, right, outputs)):
        return None
    for name in dict.fromkeys([*(n for n, _ in right), *(n for n, _ in outputs)]):
        these = [batch for n, batch in right if n == name and batch.length]
        those = [batch for n, batch in outputs if n == name and batch.length]
        expected, found = _hashes(these), _hashes(those)
        if len(expected) == len(found) and (np.sort(expected) == np.sort(found)).all():
            continue
        missing = _only(these, expected, found)
        extra = _only(those, found, expected)
        said = [f"it should put out {missing}"] * bool(missing) + [f"it puts out {extra}"] * bool(
            extra
        )
        return " and ".join(said) or "a row comes out more or less often"
    return None


def _equal(these: tuple[str, Batch], those: tuple[str, Batch]) -> bool:
    """Whether two batches are the same, row by row: a quick test, which usually says yes."""
    (name, right), (other, batch) = these, those
    return (
        name == other
        and right.length == batch.length
        and right.columns.keys() == batch.columns.keys()
        and all(map(_same, right.columns.values(), map(batch.columns.__getitem__, right.columns)))
    )


def _same(column: Column, other: Column) -> bool:
    if isinstance(column, np.ndarray) and isinstance(other, np.ndarray):
        return column.dtype == other.dtype and np.array_equal(column, other)
    if isinstance(column, Words) and isinstance(other, Words):
        return column.values == other.values and np.array_equal(column.codes, other.codes)
    return False


def _hashes(batches: Sequence[Batch]) -> Hashes:
    """One hash per row, by the names and values of its columns in any order."""
    parts = [
        hash_columns([batch.columns[name] for name in sorted(batch.columns)])
        + np.uint64(len(batch.columns))
        if batch.columns
        else np.zeros(batch.length, np.uint64)
        for batch in batches
    ]
    return np.concatenate([np.zeros(0, np.uint64), *parts])


def _only(batches: Sequence[Batch], these: Hashes, those: Hashes) -> str:
    """The first row of `batches` whose hash is not among `those`, as text; empty if there is none."""
    rows = np.flatnonzero(~np.isin(these, those))
    if not len(rows):
        return ""
    at = int(rows[0])
    for batch in batches:
        if at < batch.length:
            values = batch.slice(at, at + 1).to_pydict()
            return "(" + ", ".join(f"{name}={value[0]}" for name, value in values.items()) + ")"
        at -= batch.length
    return ""
