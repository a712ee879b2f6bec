"""Input as files (the *embedded log*): segments of blocks, and a description that all of them are there.

A partition is one segment or several. Many processes may write segments (`write_segment`), each its own. A
segment is written under another name first, so that a writer that is tried again disturbs nobody. When all
are there, one process writes the description (`describe_ingress`), durably and at once; without it there is
no input. It says of every block where it stands and which times it spans, so opening an input reads no
records.

When the records of a DataFrame are due is not decided by what is stored: `PacedIngress` is told.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Literal

from snapline.batch import Batch, Schema
from snapline.batch_form import decode, encode
from snapline.core.messages import END_OF_TIME
from snapline.errors import ObjectDamaged, ObjectMissing
from snapline.ids import Millis
from snapline.storage.blocks import BlockIngress, StoredBlock
from snapline.storage.codec import FRAME_OVERHEAD, frame, unframe
from snapline.storage.files.frames import unavailable_on_os_error
from snapline.storage.files.places import named_in, whole_file
from snapline.storage.files.store import FileStore

_DESCRIPTION = "input"


@dataclass(frozen=True, slots=True)
class Segment:
    """A file of blocks that belong to one partition."""

    file: str
    blocks: tuple[StoredBlock, ...]
    places: tuple[int, ...]  # where each block begins, and where the last ends

    @property
    def records(self) -> int:
        """How many records it has."""
        return sum(block.records for block in self.blocks)

    @property
    def bytes(self) -> int:
        """The size of the file."""
        return self.places[-1]

    def to_json(self) -> dict[str, Any]:
        """The segment as JSON can hold it."""
        spans = [[block.records, block.time_min, block.time_max] for block in self.blocks]
        return {"file": self.file, "blocks": spans, "places": list(self.places)}

    @staticmethod
    def from_json(fields: dict[str, Any]) -> "Segment":
        """Read a segment from the fields that `to_json` made."""
        blocks = tuple(StoredBlock(*span) for span in fields["blocks"])
        return Segment(fields["file"], blocks, tuple(fields["places"]))


def write_segment(directory: Path, partition: int, number: int, blocks: Iterable[Batch]) -> Segment:
    """Write one segment of a partition, durably, whole or not at all; empty blocks are left out.

    The directory must exist. It is not made, so a late writer cannot bring back an input that was given up.
    """
    file = f"partition-{partition}-{number:06d}.rows"
    spans: list[StoredBlock] = []
    places = [0]
    path = directory / file
    with unavailable_on_os_error(f"write {path}"), whole_file(path, durable=True) as out:
        for batch in blocks:
            if len(batch):
                places.append(places[-1] + out.write(frame(encode(batch))))
                spans.append(StoredBlock.of(batch))
    return Segment(file, tuple(spans), tuple(places))


def describe_ingress(
    directory: Path, schema: Schema, partitions: Sequence[Sequence[Segment]]
) -> None:
    """Say that an input is complete: these segments, in order, per partition."""
    segments = [[segment.to_json() for segment in those] for those in partitions]
    description = {"schema": dict(schema), "partitions": segments}
    FileStore(directory).put(_DESCRIPTION, json.dumps(description).encode())


def _described(directory: Path) -> tuple[Schema, list[list[Segment]]]:
    description = json.loads(FileStore(directory).get(_DESCRIPTION))
    partitions = [
        [Segment.from_json(fields) for fields in segments] for segments in description["partitions"]
    ]
    return description["schema"], partitions


def description_of(directory: Path) -> Path:
    """The file that says that an input is complete, and what belongs to it."""
    return FileStore(directory).path(_DESCRIPTION)


def segments_of(directory: Path) -> list[tuple[Path, Segment]]:
    """The files of an input. Raises StorageError if its description is gone or damaged."""
    try:
        _, partitions = _described(directory)
    except (ValueError, LookupError, TypeError) as error:
        raise ObjectDamaged(f"the description of the input in {directory} is damaged") from error
    return [(named_in(directory, each.file), each) for those in partitions for each in those]


def check_blocks(path: Path, segment: Segment) -> None:
    """Read a file of an input. Raises StorageError if one of its blocks is not what was written."""
    _refuse_missing(path)
    with unavailable_on_os_error(f"read {path}"), path.open("rb") as file:
        for place, end in pairwise(segment.places):
            _payload(path, place, file.read(end - place))


def load_block(path: Path, place: int, end: int) -> Batch:
    """Read the block that stands in these bytes of a file. Raises StorageError."""
    with unavailable_on_os_error(f"read {path}"), path.open("rb") as file:
        file.seek(place)
        return decode(_payload(path, place, file.read(end - place)))


def _refuse_missing(path: Path) -> None:
    if not path.is_file():
        raise ObjectMissing(f"there is no {path}")


def _payload(path: Path, place: int, framed: bytes) -> memoryview:
    payload = unframe(framed)
    if payload is None:
        raise ObjectDamaged(f"the records at byte {place} of {path} are damaged")
    return payload


class FileIngress(BlockIngress):
    """An `Ingress` over such files."""

    def __init__(self, directory: Path) -> None:
        schema, partitions = _described(directory)
        super().__init__(
            schema,
            [[block for segment in those for block in segment.blocks] for those in partitions],
        )
        self._places = [
            [
                (named_in(directory, segment.file), place, end)
                for segment in those
                for place, end in zip(segment.places, segment.places[1:], strict=False)
            ]
            for those in partitions
        ]

    @property
    def identity(self) -> str:
        """A digest of the schema and of the checksum of every block; the records are not read."""
        digest = hashlib.sha256(repr(sorted(self.schema.items())).encode())
        for places in self._places:
            for path, here in groupby(places, key=lambda place: place[0]):
                _refuse_missing(path)
                digest.update(path.name.encode())
                with unavailable_on_os_error(f"read {path}"), path.open("rb") as file:
                    for _, place, end in here:
                        file.seek(place)
                        digest.update(b"%d %d " % (place, end) + file.read(FRAME_OVERHEAD))
        return digest.hexdigest()

    def load(self, partition: int, block: int) -> Batch:
        """Read one block."""
        return load_block(*self._places[partition][block])


class PacedIngress(FileIngress):
    """An `Ingress` over such files whose records are due as a user has said.

    `pace` is a rate per second over all partitions; `max`: everything is due at once; None: a record is due
    at its time, counted from the earliest record. What is not due before `cut_ms` does not belong to it.
    """

    def __init__(
        self, directory: Path, pace: int | Literal["max"] | None, cut_ms: Millis | None = None
    ) -> None:
        super().__init__(directory)
        self._pace = pace
        self._cut_ms = cut_ms
        filled = [known.lowest[0] for known in self._partitions if known.end]
        self._first_ms = min(filled, default=0)
        self._ends = [known.end for known in self._partitions]
        if cut_ms is not None:
            self._ends = [self.due_through(p, cut_ms - 1) for p in range(self.partitions)]

    @property
    def identity(self) -> str:
        """That of the files, with when the records are due."""
        return repr((super().identity, self._pace, self._cut_ms))

    def end(self, partition: int) -> int:
        """The number of records in the partition."""
        return self._ends[partition]

    def due_ms(self, partition: int, offset: int) -> Millis:
        """When the record at `offset` is due."""
        if self._pace is None:
            return super().due_ms(partition, offset) - self._first_ms
        if self._pace == "max":
            return 0
        return (offset * self.partitions + partition) * 1000 // self._pace

    def due_through(self, partition: int, now_ms: Millis) -> int:
        """The number of records that are due by now."""
        end = self._ends[partition]
        if self._pace is None:
            return min(end, super().due_through(partition, now_ms + self._first_ms))
        if self._pace == "max":
            return end if now_ms >= 0 else 0
        # due_ms(n) <= now  <=>  n * partitions + partition < due, the records that are due in all
        due = -((now_ms + 1) * self._pace // -1000)
        return min(end, max(0, -((due - partition) // -self.partitions)))

    def due_at_least(self, partition: int, now_ms: Millis) -> int:
        """A lower bound of `due_through` that is known without waiting for a block."""
        if self._pace is not None:
            return self.due_through(partition, now_ms)
        return min(self._ends[partition], super().due_at_least(partition, now_ms + self._first_ms))

    def watermark(self, partition: int, offset: int) -> Millis:
        """The watermark at `offset`: no record from there on has a time below it."""
        if offset >= self._ends[partition]:
            return END_OF_TIME
        return super().watermark(partition, offset)

    def read(self, partition: int, offset: int, stop: int) -> Batch:
        """Records offset <= n < stop."""
        return super().read(partition, offset, min(stop, self._ends[partition]))

    def needed(
        self, partition: int, offset: int, stop: int, now_ms: Millis | None
    ) -> Sequence[int]:
        """The blocks that a read of these records needs, and that are not in memory."""
        if self._pace is not None or now_ms is None:
            return super().needed(partition, offset, stop, None)
        return super().needed(partition, offset, stop, now_ms + self._first_ms)
