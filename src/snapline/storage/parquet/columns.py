"""The columns of Parquet files, as Spark spells their types, read from a footer and without Spark."""

from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow import dataset, parquet

from snapline.errors import UsageError
from snapline.storage.column_types import DATE, TIMESTAMP, TIMESTAMP_NTZ

_SPELLED: Final = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "tinyint"),
    (pa.types.is_int16, "smallint"),
    (pa.types.is_int32, "int"),
    (pa.types.is_int64, "bigint"),
    (pa.types.is_uint8, "smallint"),
    (pa.types.is_uint16, "int"),
    (pa.types.is_uint32, "bigint"),
    (pa.types.is_uint64, "decimal(20,0)"),
    (pa.types.is_float32, "float"),
    (pa.types.is_float64, "double"),
    (pa.types.is_date, DATE),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_binary, "binary"),
    (pa.types.is_large_binary, "binary"),
    (pa.types.is_fixed_size_binary, "binary"),
)


def parquet_columns(path: Path) -> dict[str, str]:
    """The columns of a file, or of all files in a directory. Raises UsageError if there is none.

    Directories that are called `day=7` give a column to what lies in them. A timestamp in 96 bits, as older
    programs write it, is one with a time zone to Spark, though it says nothing of that.
    """
    try:
        found = dataset.dataset(path, format="parquet", partitioning="hive")
        if not found.files:
            raise FileNotFoundError
        footer = parquet.ParquetFile(found.files[0]).schema
    except (OSError, pa.ArrowException) as error:
        raise UsageError(f"there is no Parquet file that can be read in {path}") from error
    old = {
        footer.column(number).path
        for number in range(len(footer.names))
        if footer.column(number).physical_type == "INT96"
    }
    types = {field.name: _spelled(field.type) for field in found.schema}
    return {name: TIMESTAMP if name in old else spelled for name, spelled in types.items()}


def _spelled(kind: pa.DataType) -> str:
    """The type that Spark gives to a column of a Parquet file; Arrow's own name where it has none."""
    for check, spelling in _SPELLED:
        if check(kind):
            return spelling
    if pa.types.is_dictionary(kind):
        return _spelled(kind.value_type)
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return TIMESTAMP if kind.tz is not None else TIMESTAMP_NTZ
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"array<{_spelled(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{_spelled(kind.key_type)},{_spelled(kind.item_type)}>"
    if pa.types.is_struct(kind):
        inner = (f"{part.name}:{_spelled(part.type)}" for part in kind)
        return f"struct<{','.join(inner)}>"
    return str(kind)
