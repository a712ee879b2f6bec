"""Input as Parquet files, which everybody can read: `part-<partition>-<segment>.parquet`.

A row group is a block. The footers say how many records it has and which times it spans, so opening an
input reads footers only, and following it reads one row group after the other, never a whole file. Columns
of the kind `words` keep it: the Arrow schema that is stored beside Parquet's own says which they are.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from snapline.batch import Batch, Schema
from snapline.errors import ObjectDamaged, UsageError
from snapline.storage.blocks import BlockIngress, StoredBlock
from snapline.storage.files.frames import unavailable_on_os_error
from snapline.storage.files.places import whole_file
from snapline.storage.parquet.arrow import arrow_schema, from_arrow, kinds, to_arrow

_TAIL_BYTES = 8  # what follows the footer: its length in 4 bytes, and "PAR1"
_NAME = re.compile(r"part-(?P<partition>\d+)-(?P<segment>\d+)\.parquet")


def write_part(
    directory: Path, partition: int, segment: int, schema: Schema, blocks: Iterable[Batch]
) -> Path:
    """Write one file of a partition, durably, whole or not at all. The directory must be there."""
    path = directory / f"part-{partition:05d}-{segment:06d}.parquet"
    with (
        unavailable_on_os_error(f"write {path}"),
        whole_file(path, durable=True) as file,  # until then its name has a dot: Spark ignores it
        parquet.ParquetWriter(file, arrow_schema(schema)) as writer,
    ):
        for batch in blocks:
            if len(batch):
                writer.write_table(pa.Table.from_batches([to_arrow(batch)]))
    return path


class ParquetIngress(BlockIngress):
    """An `Ingress` over the Parquet files in a directory."""

    def __init__(self, directory: Path) -> None:
        self._files: dict[int, tuple[Path, Any]] = {}  #: the open file of a partition
        partitions = _find(directory)
        self._places: list[list[tuple[Path, int]]] = []
        blocks: list[list[StoredBlock]] = []
        schema: Schema | None = None
        for paths in partitions:
            self._places.append([])
            blocks.append([])
            for path in paths:
                file = _open(path)
                own = kinds(file.schema_arrow)
                schema = own if schema is None else schema
                if own != schema:
                    raise UsageError(f"{path} has other columns than the files before it")
                found = _row_groups(path, file.metadata)
                self._places[-1] += [(path, group) for group in found]
                blocks[-1] += found.values()
        super().__init__(schema or {}, blocks)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_files": {}}

    @property
    def identity(self) -> str:
        """A digest of the names, sizes and footers of all files; the records are not read."""
        digest = hashlib.sha256()
        for path in dict.fromkeys(path for places in self._places for path, _ in places):
            with unavailable_on_os_error(f"read {path}"), path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - _TAIL_BYTES))
                footer = int.from_bytes(file.read()[:4], "little")
                file.seek(max(0, size - _TAIL_BYTES - footer))
                digest.update(f"{path.name} {size} ".encode() + file.read())
        return digest.hexdigest()

    def load(self, partition: int, block: int) -> Batch:
        """Read one row group."""
        path, group = self._places[partition][block]
        held = self._files.get(partition)
        if held is None or held[0] != path:
            if held is not None:
                held[1].close()
            held = self._files[partition] = path, _open(path)
        try:
            return from_arrow(held[1].read_row_group(group))
        except (OSError, pa.ArrowException) as error:
            raise ObjectDamaged(f"row group {group} of {path} cannot be read: {error}") from error


def _find(directory: Path) -> Sequence[Sequence[Path]]:
    """The files of each partition, in order."""
    found: dict[int, dict[int, Path]] = {}
    for path in directory.glob("*.parquet"):
        match = _NAME.fullmatch(path.name)
        if match is None:
            raise UsageError(f"{path} is not called part-<partition>-<segment>.parquet")
        found.setdefault(int(match["partition"]), {})[int(match["segment"])] = path
    if not found:
        raise UsageError(f"there are no Parquet files in {directory}")
    for partition in range(max(found) + 1):
        segments = found.get(partition, {})
        if sorted(segments) != list(range(len(segments))) or not segments:
            raise UsageError(f"files of partition {partition} are missing in {directory}")
    return [[found[p][s] for s in sorted(found[p])] for p in sorted(found)]


def _open(path: Path) -> Any:
    with unavailable_on_os_error(f"read {path}"):
        try:
            return parquet.ParquetFile(path)
        except pa.ArrowException as error:
            raise ObjectDamaged(f"{path} is no Parquet file: {error}") from error


def _row_groups(path: Path, footer: Any) -> Mapping[int, StoredBlock]:
    """The blocks of a file by the number of their row group; row groups without rows are left out."""
    names = [footer.schema.column(i).path for i in range(footer.num_columns)]
    if "time" not in names:
        raise UsageError(f"{path} has no column `time`: int64, in milliseconds")
    time = names.index("time")
    found = {}
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        if group.num_rows:
            span = group.column(time).statistics
            if span is None or not span.has_min_max:
                raise UsageError(f"{path} has no statistics of `time`: write it with statistics")
            found[number] = StoredBlock(group.num_rows, int(span.min), int(span.max))
    return found
