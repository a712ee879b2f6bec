"""Dates, timestamps and decimals of Arrow as numbers, and back (`storage/column_types.py` says which).

A decimal of Arrow has 128 bits. Of one with at most 18 digits the lower 64 bits are the whole number, and
the upper ones its sign, so they are taken and added without looking at a single value.
"""

from typing import Final

import numpy as np
import pyarrow as pa

from snapline.batch import Array
from snapline.errors import UsageError
from snapline.storage.column_types import (
    DATE,
    TIMESTAMP,
    TIMESTAMP_MS,
    TIMESTAMP_NTZ,
    Meaning,
    digits_of,
)

_WORDS: Final = 2  # of 64 bits, in a decimal of Arrow; the lower one comes first
_ARROW: Final = {
    DATE: pa.date32(),
    TIMESTAMP: pa.timestamp("us", "UTC"),
    TIMESTAMP_MS: pa.timestamp("us", "UTC"),
    TIMESTAMP_NTZ: pa.timestamp("us"),
}


def arrow_type(meaning: Meaning) -> pa.DataType:
    """The type of Arrow for numbers that mean this."""
    digits = digits_of(meaning)
    return pa.decimal128(*digits) if digits is not None else _ARROW[meaning]


def spelled(meaning: Meaning) -> str:
    """How Spark spells the type of numbers that mean this."""
    return TIMESTAMP if meaning == TIMESTAMP_MS else meaning


def as_numbers(array: pa.Array) -> pa.Array:
    """An array in which dates, timestamps and decimals are int64; any other array as it is."""
    if pa.types.is_decimal128(array.type):
        words = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, _WORDS)
        lower = words[array.offset : array.offset + len(array), 0]
        if array.null_count:
            return pa.array(lower, mask=np.asarray(array.is_null()))
        return _held(lower)
    if pa.types.is_date32(array.type):
        return array.cast(pa.int32()).cast(pa.int64())
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64())
    return array


def as_meant(numbers: Array, meaning: Meaning) -> pa.Array:
    """The dates, timestamps or decimals that these numbers mean. Raises UsageError if there are none."""
    wanted = arrow_type(meaning)
    if pa.types.is_decimal(wanted):
        words = np.empty((len(numbers), _WORDS), np.int64)
        words[:, 0] = numbers
        words[:, 1] = numbers >> 63
        return pa.Array.from_buffers(wanted, len(numbers), [None, pa.py_buffer(words)])
    if meaning == TIMESTAMP_MS:
        micros = numbers * 1000
        if (micros // 1000 != numbers).any():
            raise UsageError("a time is too far away for a timestamp: it has no microseconds")
        return _held(micros).cast(wanted)
    if meaning == DATE:
        return _held(numbers).cast(pa.int32()).cast(wanted)
    return _held(numbers).cast(wanted)


def _held(numbers: Array) -> pa.Array:
    """The numbers as they are. Not by `pa.array`, which would import pandas: that takes seconds."""
    buffer = pa.py_buffer(np.ascontiguousarray(numbers, np.int64))
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, buffer])
