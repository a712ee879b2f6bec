"""The chain of a stream: which micro-batches belong to the input, in which order, for ever.

stream.obj                       what the stream is: its id, columns, partitions, disorder and idle time
batches/1-128/<batch>-<random>/  the segments that one attempt at a micro-batch has written
manifests/1.obj, 2.obj ...       manifest n says which segments micro-batch n-1 consists of; the last seals
floors/                          how much of it was deleted (`manifests`)

The records of a micro-batch are written first, by whoever tries, into a folder that nobody else has. They
belong to the input when their manifest is there. It is written under the number of the micro-batch, only
if that number is free; so a micro-batch that is repeated, by the same query or by another driver, adds
nothing, whatever the order of its rows. Its folder is dropped. That a number which was bundled or deleted
is not free again is shown in `manifests`.

All manifests name the same query, because the numbers of micro-batches mean something only within one. A
query that has lost its checkpoint begins at 0 under another id, and is refused: its rows are there already.

A seal is a manifest, too. It takes the next number, so of a seal and a micro-batch that race one comes
first, and behind a seal nothing is written.
"""

import json
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

from snapline.batch import Schema
from snapline.errors import ObjectDamaged, StorageError
from snapline.ids import Millis
from snapline.storage.files.ingress import Segment
from snapline.storage.files.places import make_directory
from snapline.storage.files.store import FileStore
from snapline.storage.streams.manifests import (
    BatchManifest,
    InputDeleted,
    Manifests,
    Position,
    batches_of,
)

_DESCRIPTION = "stream"
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


def read_manifests(place: Path) -> list[BatchManifest]:
    """All manifests that are there and were not deleted. Raises StorageError."""
    manifests = Manifests(place)
    return list(manifests.since(manifests.floor()))


class StreamChain:
    """The chain for those who add to it: the query of a stream, on the driver."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.manifests = Manifests(place)
        self.last: BatchManifest | None = None  #: the last one that is known
        self.manifests.check_no_gap()
        self.refresh()

    @property
    def length(self) -> int:
        """How many manifests are known, those that were deleted included."""
        return self.last.number if self.last is not None else 0

    @property
    def sealed(self) -> bool:
        """Whether the chain has come to its end."""
        return self.last is not None and self.last.sealed

    def refresh(self) -> None:
        """Read what was added since. Raises StorageError."""
        try:
            self.last = self.last or self.manifests.newest()
            while not self.sealed and (found := self.manifests.read(self.length + 1)):
                self.last = found
        except InputDeleted:  # nobody has looked for longer than input is kept
            self.last = self.manifests.newest()

    def begin(self, batch: int, query: str) -> Path | None:
        """A new folder for the segments of a micro-batch; None if there is nothing left to do for it.

        Raises ChainRefused if it does not belong here.
        """
        if not self._wanted(batch, query):
            return None
        folder = batches_of(self.place, batch + 1) / f"{batch:06d}-{uuid4().hex[:12]}"
        make_directory(folder)
        return folder

    def add(self, batch: int, query: str, folder: Path, segments: Mapping[int, Segment]) -> bool:
        """Make a micro-batch whose segments are durable part of the input; False if it was already.

        Then its folder is dropped: the segments of whoever came first count.
        """
        try:
            added = self._wanted(batch, query) and self._put(query, folder.name, dict(segments))
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
            self._put()

    def _put(
        self, query: str = "", folder: str = "", segments: Mapping[int, Segment] | None = None
    ) -> bool:
        """Write the next manifest; whether it is the one that counts. What is known then is up to date."""
        partitions = described_stream(self.place).partitions
        before = self.last.after if self.last is not None else Position((0,) * partitions)
        manifest = BatchManifest(self.length + 1, _now_ms(), before, query, folder, segments)
        encoded = json.dumps(manifest.to_json()).encode()
        self.manifests.own.put_if_absent(str(manifest.number), encoded)
        # AFTER the number is won or lost: what counts under it. It may have been bundled or deleted (M3).
        try:
            counts = self.manifests.read(manifest.number)
        except InputDeleted:
            counts = None
        self.refresh()
        return counts is not None and counts.folder == folder

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
                f"those before it: manifests in {self.place / 'manifests'} are gone"
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
