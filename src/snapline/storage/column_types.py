"""Which kind of column holds a type of Spark's, and what the numbers in it then mean.

Most types have a kind of their own. A date, a timestamp and a decimal are held as int64, so that operators
compute on them as on any other number; what the numbers mean is noted beside the column (`Meaning`), and
where it is still known at a sink, the rows come back with the type that they had:

date                days since 1970
timestamp           microseconds since 1970, in UTC
timestamp_ntz       microseconds since 1970, in no time zone
timestamp_ms        milliseconds since 1970: the column `time`, where that was a timestamp
decimal(p,s)        the number times 10 to the power of s; p is at most 18

Types are spelled as Spark spells them: `DataType.simpleString()`.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from snapline.batch import Kind
from snapline.errors import UsageError

Meaning: TypeAlias = str
"""What the numbers of an int64 column stand for: one of the words above."""

Meanings: TypeAlias = Mapping[str, Meaning]
"""The meanings of those columns of a stream that have one."""

DATE: Final = "date"
TIMESTAMP: Final = "timestamp"
TIMESTAMP_NTZ: Final = "timestamp_ntz"
TIMESTAMP_MS: Final = "timestamp_ms"
DIGITS_MAX: Final = 18
"""The most digits of a decimal that always fit into 64 bits."""

_PLAIN: Final[Mapping[str, Kind]] = {
    "boolean": "bool",
    "tinyint": "int8",
    "smallint": "int16",
    "int": "int32",
    "bigint": "int64",
    "float": "float32",
    "double": "float64",
    "string": "str",
    "binary": "bytes",
    **{f"array<{integer}>": "list" for integer in ("tinyint", "smallint", "int", "bigint")},
}
_DECIMAL: Final = re.compile(r"decimal\(([0-9]{1,2}),([0-9]{1,2})\)")
_DECIMAL_DIGITS_MAX: Final = 38  # of Spark's decimals, and of Arrow's
_NAME_BYTES_MAX: Final = 255


class ColumnType(NamedTuple):
    """How a column is held, and what it means; None: its numbers mean themselves."""

    kind: Kind
    meaning: Meaning | None = None


def column_type(name: str, spelled: str) -> ColumnType:
    """How a column of this type is held. Raises UsageError with what to do if it cannot be."""
    if not 0 < len(name.encode()) <= _NAME_BYTES_MAX:
        raise UsageError(
            f"a column is called {name!r:.40}: a name has 1 to {_NAME_BYTES_MAX} bytes"
        )
    if spelled in _PLAIN:
        return ColumnType(_PLAIN[spelled])
    if spelled in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return ColumnType("int64", spelled)
    digits = digits_of(spelled)
    if digits is not None and digits[0] <= DIGITS_MAX:
        return ColumnType("int64", spelled)
    raise UsageError(f"the column '{name}' is {_article(spelled)}, {_advice(name, spelled)}")


def digits_of(spelled: str) -> tuple[int, int] | None:
    """The digits of a decimal, and how many of them stand behind the point; None for other types."""
    match = _DECIMAL.fullmatch(spelled)
    return (int(match[1]), int(match[2])) if match else None


def summed(meaning: Meaning) -> Meaning | None:
    """What the sum of a column means, as in Spark: ten more digits; nothing for dates and times."""
    digits = digits_of(meaning)
    return f"decimal({min(digits[0] + 10, _DECIMAL_DIGITS_MAX)},{digits[1]})" if digits else None


def read_meanings(said: Any) -> dict[str, Meanings]:
    """The meanings of columns, by sink, as JSON has them. Raises UsageError if a word means nothing."""
    sinks = said if isinstance(said, dict) else {}
    for sink, meanings in sinks.items():
        if not isinstance(meanings, dict) or not all(map(_is_meaning, meanings.values())):
            raise UsageError(f"what the columns of the sink {sink!r:.40} mean was changed")
    return sinks


def _is_meaning(word: Any) -> bool:
    if not isinstance(word, str):
        return False
    digits = digits_of(word)
    if digits is None:
        return word in (DATE, TIMESTAMP, TIMESTAMP_NTZ, TIMESTAMP_MS)
    return 1 <= digits[0] <= _DECIMAL_DIGITS_MAX and digits[1] <= digits[0]


def _article(spelled: str) -> str:
    short = spelled if len(spelled) <= 60 else f"{spelled[:57]}..."
    return f"{'an' if spelled[0] in 'aeiou' else 'a'} {short}"


def _advice(name: str, spelled: str) -> str:
    """Why a type is refused, and what to do about it."""
    if spelled.startswith("struct<"):
        return f"and columns are flat: take its fields, df.select('*', '{name}.*').drop('{name}')"
    if spelled.startswith("map<"):
        return f"and columns are flat: take its values, df.withColumn('a', df['{name}']['a'])"
    if spelled.startswith("array<"):
        return (
            "and only arrays of integers are taken: make rows of it with F.explode, "
            f"or a text with df.withColumn('{name}', F.to_json('{name}'))"
        )
    if (digits := digits_of(spelled)) is not None:
        return (
            f"and decimals have at most {DIGITS_MAX} digits here: cast it, "
            f"df.withColumn('{name}', df['{name}'].cast('decimal({DIGITS_MAX},{digits[1]})'))"
        )
    return (
        "for which there is no kind of column: cast it to a number, a text or a timestamp, "
        f"df.withColumn('{name}', df['{name}'].cast('string'))"
    )
