"""Input as files (the *embedded log*): segments of blocks, and a description that all of them are there.

A partition is one segment or several. Many processes may write segments (`write_segment`), each its own. A
segment is written under another name first, so that a writer that is tried again disturbs nobody. When all
are there, one process writes the description (`describe_ingress`), durably and at once; without it there is
no input. It says of every block where it stands and which times it spans, so opening an input reads no
records.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from snapline.batch import Batch, Schema
from snapline.batch_form import decode, encode
from snapline.errors import ObjectDamaged
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


class FileIngress(BlockIngress):
    """An `Ingress` over such files."""

    def __init__(self, directory: Path) -> None:
        description = json.loads(FileStore(directory).get(_DESCRIPTION))
        partitions = [
            [Segment.from_json(fields) for fields in segments]
            for segments in description["partitions"]
        ]
        super().__init__(
            description["schema"],
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
                digest.update(path.name.encode())
                with unavailable_on_os_error(f"read {path}"), path.open("rb") as file:
                    for _, place, end in here:
                        file.seek(place)
                        digest.update(b"%d %d " % (place, end) + file.read(FRAME_OVERHEAD))
        return digest.hexdigest()

    def load(self, partition: int, block: int) -> Batch:
        """Read one block."""
        path, place, end = self._places[partition][block]
        with unavailable_on_os_error(f"read {path}"), path.open("rb") as file:
            file.seek(place)
            payload = unframe(file.read(end - place))
        if payload is None:
            raise ObjectDamaged(f"the records at byte {place} of {path} are damaged")
        return decode(payload)
