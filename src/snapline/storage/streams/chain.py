"""The chain of a stream: which micro-batches belong to the input, in which order, for ever.

stream.obj                    what the stream is: its id, columns, partitions, disorder and idle time
batches/<batch>-<random>/     the segments that one attempt at a micro-batch has written
manifests/1.obj, 2.obj ...    manifest n says which segments micro-batch n-1 consists of; the last one seals

The records of a micro-batch are written first, by whoever tries, into a folder that nobody else has. They
belong to the input when their manifest is there. It is written under the number of the micro-batch, only
if that number is free; so a micro-batch that is repeated, by the same query or by another driver, adds
nothing, whatever the order of its rows. Its folder is dropped.

All manifests name the same query, because the numbers of micro-batches mean something only within one. A
query that has lost its checkpoint begins at 0 under another id, and is refused: its rows are there already.

A seal is a manifest, too. It takes the next number, so of a seal and a micro-batch that race one comes
first, and behind a seal nothing is written.
"""

import json
import os
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

from snapline.batch import Schema
from snapline.errors import ObjectDamaged, ObjectMissing, StorageError
from snapline.ids import Millis
from snapline.storage.files.frames import unavailable_on_os_error
from snapline.storage.files.ingress import Segment
from snapline.storage.files.places import make_directory, named_in
from snapline.storage.files.store import FileStore

_DESCRIPTION = "stream"
_MANIFESTS = "manifests"
_BATCHES = "batches"
CHECKPOINT = "checkpoint"
"""The folder in which Spark keeps the checkpoint of the query."""


class ChainRefused(StorageError):
    """A micro-batch does not belong into this chain. Definite: it was not added."""


@dataclass(frozen=True, slots=True)
class StreamDescription:
    """What a stream is, fixed when its run first starts."""

    id: str
    schema: Schema
    time: str | None  # the column with the times of the rows
    disorder_ms: Millis
    idle_ms: Millis
    partitions: int
    begun_ms: int  # when that was: Unix time


@dataclass(frozen=True, slots=True)
class BatchManifest:
    """One link of the chain: a micro-batch, or the seal."""

    number: int
    at_ms: int  # when it was written: Unix time
    query: str = ""
    folder: str = ""
    segments: Mapping[int, Segment] | None = None  # by partition; None: the chain is sealed

    @property
    def sealed(self) -> bool:
        """Whether it is the end of the chain."""
        return self.segments is None

    def files(self, place: Path) -> list[tuple[Path, Segment]]:
        """The files of its segments."""
        if not self.segments:
            return []
        folder = named_in(place / _BATCHES, self.folder)
        return [(named_in(folder, segment.file), segment) for segment in self.segments.values()]

    def encoded(self) -> bytes:
        """The manifest as bytes; its number is its name."""
        said: dict[str, Any] = {"number": self.number, "at_ms": self.at_ms}
        if self.segments is not None:
            segments = {str(p): segment.to_json() for p, segment in self.segments.items()}
            said |= {"query": self.query, "folder": self.folder, "segments": segments}
        return json.dumps(said).encode()


def describe_stream(
    place: Path,
    schema: Schema,
    *,
    time: str | None,
    disorder_ms: Millis,
    idle_ms: Millis,
    partitions: int,
) -> None:
    """Say, durably, that a stream is here, with an id that no other has. Who says it first is right."""
    about = StreamDescription(
        uuid4().hex, dict(schema), time, disorder_ms, idle_ms, partitions, _now_ms()
    )
    make_directory(place)
    FileStore(place).put_if_absent(_DESCRIPTION, json.dumps(asdict(about)).encode())


def described_stream(place: Path) -> StreamDescription:
    """What the stream in a directory is. Raises StorageError."""
    try:
        return StreamDescription(**json.loads(FileStore(place).get(_DESCRIPTION)))
    except (ValueError, TypeError) as error:
        raise ObjectDamaged(f"the description of the stream in {place} is damaged") from error


def stream_description_of(place: Path) -> Path:
    """The file that says that a stream is here; before it is there, there is none."""
    return FileStore(place).path(_DESCRIPTION)


def is_stream(place: Path) -> bool:
    """Whether what lies in a directory is a stream."""
    return stream_description_of(place).is_file()


def manifest_path(place: Path, number: int) -> Path:
    """The file of a manifest."""
    return _manifests(place).path(str(number))


def read_manifest(place: Path, number: int) -> BatchManifest | None:
    """One manifest; None if it is yet to come. Raises StorageError."""
    try:
        data = _manifests(place).get(str(number))
    except ObjectMissing:
        return None
    try:
        return _decoded(json.loads(data), number)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        where = manifest_path(place, number)
        raise ObjectDamaged(f"{where} is not what was written: {error}") from error


def _manifests(place: Path) -> FileStore:
    return FileStore(place / _MANIFESTS)


def _decoded(said: dict[str, Any], number: int) -> BatchManifest:
    if said["number"] != number:
        raise ObjectDamaged(f"manifest {said['number']} lies in the place of manifest {number}")
    if "segments" not in said:
        return BatchManifest(number, said["at_ms"])
    segments = {int(p): Segment.from_json(fields) for p, fields in said["segments"].items()}
    return BatchManifest(number, said["at_ms"], said["query"], said["folder"], segments)


def read_manifests(place: Path, first: int = 1) -> list[BatchManifest]:
    """All manifests from a number on, as far as they are there. Raises StorageError."""
    found: list[BatchManifest] = []
    while (not found or not found[-1].sealed) and (
        manifest := read_manifest(place, first + len(found))
    ) is not None:
        found.append(manifest)
    return found


def last_number(place: Path) -> int:
    """The highest number of a manifest that is there, by its name alone; 0 if there is none."""
    folder = place / _MANIFESTS
    with unavailable_on_os_error(f"list {folder}"):
        names = os.listdir(folder) if folder.is_dir() else []
    numbers = [int(stem) for name in names if (stem := name.removesuffix(".obj")).isdecimal()]
    return max(numbers, default=0)


def check_no_gap(place: Path, end: int) -> None:
    """Raise ObjectMissing if manifests lie behind the last one that was found, `end`."""
    if last_number(place) > end and read_manifest(place, end + 1) is None:
        raise ObjectMissing(
            f"{manifest_path(place, end + 1)} is gone: manifests behind it are there"
        )


class StreamChain:
    """The chain for those who add to it: the query of a stream, on the driver."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.last: BatchManifest | None = None  #: the last one that is known
        self.refresh()
        check_no_gap(place, self.length)

    @property
    def length(self) -> int:
        """How many manifests are known."""
        return self.last.number if self.last is not None else 0

    @property
    def sealed(self) -> bool:
        """Whether the chain has come to its end."""
        return self.last is not None and self.last.sealed

    def refresh(self) -> None:
        """Read what was added since. Raises StorageError."""
        while not self.sealed and (found := read_manifest(self.place, self.length + 1)):
            self.last = found

    def begin(self, batch: int, query: str) -> Path | None:
        """A new folder for the segments of a micro-batch; None if there is nothing left to do for it.

        Raises ChainRefused if it does not belong here.
        """
        if not self._wanted(batch, query):
            return None
        folder = self.place / _BATCHES / f"{batch:06d}-{uuid4().hex[:12]}"
        make_directory(folder)
        return folder

    def add(self, batch: int, query: str, folder: Path, segments: Mapping[int, Segment]) -> bool:
        """Make a micro-batch whose segments are durable part of the input; False if it was already.

        Then its folder is dropped: the segments of whoever came first count.
        """
        manifest = BatchManifest(batch + 1, _now_ms(), query, folder.name, dict(segments))
        try:
            added = self._wanted(batch, query) and self._put(manifest)
            if not added:
                self._wanted(batch, query)  # raises if what came first was not the same micro-batch
        except ChainRefused:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        if not added or not segments:
            shutil.rmtree(folder, ignore_errors=True)
        return added

    def seal(self) -> None:
        """End the chain: what is not in it by now never will be. Sealing it again changes nothing."""
        self.refresh()
        while not self.sealed:
            self._put(BatchManifest(self.length + 1, _now_ms()))

    def drop_leftovers(self) -> None:
        """Delete folders that no manifest names, nor ever will: their micro-batch has its manifest."""
        named = {manifest.folder for manifest in read_manifests(self.place)}
        for folder in (self.place / _BATCHES).glob("*-*"):
            batch = folder.name.partition("-")[0]
            if folder.name not in named and batch.isdecimal() and int(batch) < self.length:
                shutil.rmtree(folder, ignore_errors=True)

    def _put(self, manifest: BatchManifest) -> bool:
        put = _manifests(self.place).put_if_absent(str(manifest.number), manifest.encoded())
        self.refresh()
        return put

    def _wanted(self, batch: int, query: str) -> bool:
        """Whether a micro-batch is the next one; False: it is there. Raises ChainRefused."""
        self.refresh()
        last = self.last
        if last is not None and last.sealed:
            if batch < self.length - 1:
                return False
            raise ChainRefused("the stream has come to its end in this run: nothing is added to it")
        if last is not None and last.query != query:
            raise ChainRefused(
                f"the query has lost its checkpoint in {self.place / CHECKPOINT}: it would read again "
                "what this run has read already. Put it back from a copy, or start a new run"
            )
        if batch > self.length:
            raise ChainRefused(
                f"the query goes on with micro-batch {batch}, and this run has only {self.length} of "
                f"those before it: manifests in {self.place / _MANIFESTS} are gone"
            )
        return batch == self.length


def _now_ms() -> int:
    return int(time.time() * 1000)


# What the judge and the verifier ask of a chain.


def records_late(description: StreamDescription, manifests: Iterable[BatchManifest]) -> bool:
    """Whether rows came further behind the others than the stream's disorder allows."""
    highest: Millis | None = None
    for manifest in manifests:
        blocks = [b for segment in (manifest.segments or {}).values() for b in segment.blocks]
        if highest is not None and any(
            block.time_min < highest - description.disorder_ms for block in blocks
        ):
            return True
        times = [block.time_max for block in blocks] + ([highest] if highest is not None else [])
        highest = max(times, default=None)
    return False


def pauses(description: StreamDescription, manifests: Iterable[BatchManifest]) -> bool:
    """Whether the stream may have been idle before its last rows, by the clock of whoever wrote them."""
    written = [manifest.at_ms for manifest in manifests if manifest.segments]
    times = [description.begun_ms, *written]
    # Half of it, because a manifest comes into sight some time after it was begun.
    return any(later - before >= description.idle_ms / 2 for before, later in pairwise(times))


def check_manifest(place: Path, number: int) -> None:
    """Raise StorageError if a manifest is gone or damaged."""
    if read_manifest(place, number) is None:
        raise ObjectMissing(f"there is no {manifest_path(place, number)}")
