"""The index beside a segment: which message stands where, so that opening a log reads no messages.

After each sync a frame is added for the messages between two places of the segment: where the frame before
ended, and how far the segment is durable now. The index itself is never synced and proves nothing about
what it does not hold. Where it is missing or torn, or goes beyond the end of the segment, the segment is
scanned instead. What it names was durable once: if that cannot be read any more, it is damaged.
"""

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np

from snapline.batch import Batch, Words
from snapline.batch_form import decode, encode
from snapline.ids import ChannelId, Epoch, Seq
from snapline.storage.codec import FRAME_OVERHEAD, frame, unframe
from snapline.storage.files.places import Descriptor, make_file

Entry: TypeAlias = tuple[ChannelId, Seq, Epoch, int, int]
"""A message of a segment: channel, seq, epoch, place of its frame, length of the payload."""

_MAGIC = b"IDX1"
# Magic, and the two places of the segment between which the entries stand.
_HEAD = struct.Struct("<4sQQ")


def index_of(segment: Path) -> Path:
    """The path of the index of a segment."""
    return segment.with_suffix(".index")


def segment_of(index: Path) -> Path:
    """The path of the segment to which an index belongs."""
    return index.with_suffix(".log")


class IndexWriter:
    """Notes the messages of a new segment, and writes down those that are durable."""

    def __init__(self, segment: Path) -> None:
        self._path = index_of(segment)
        self._file: Descriptor | None = None  #: once something was written
        self._entries: list[Entry] = []  #: not written yet, in the order of their places
        self._through = 0  #: where the next frame begins
        self._given_up = False

    def add(self, entry: Entry) -> None:
        """Note a message that was appended to the segment."""
        if not self._given_up:
            self._entries.append(entry)

    def write(self, place: int) -> None:
        """Write down the messages before `place`, which are durable; if that fails, give the index up.

        The segment is scanned then when it is opened.
        """
        if place <= self._through or self._given_up:
            return
        durable = [entry for entry in self._entries if entry[3] < place]
        del self._entries[: len(durable)]
        data = frame(_HEAD.pack(_MAGIC, self._through, place) + encode(_to_batch(durable)))
        self._through = place
        try:
            if self._file is None:
                self._file = Descriptor(make_file(self._path, os.O_TRUNC | os.O_APPEND))
            assert self._file.fd is not None
            self._given_up = os.write(self._file.fd, data) < len(data)
        except OSError:
            self._given_up = True

    def close(self) -> None:
        """Close the index: nothing more is written to it."""
        self._given_up = True
        self._entries.clear()
        if self._file is not None:
            self._file.close()


def read_index(segment: Path, size: int) -> tuple[list[Entry], int]:
    """What the index says of a segment that has so many bytes, and up to which place."""
    try:
        data = index_of(segment).read_bytes()
    except OSError:
        return [], 0
    entries: list[Entry] = []
    at = through = 0
    while (payload := unframe(data, at)) is not None and len(payload) > _HEAD.size:
        magic, start, stop = _HEAD.unpack_from(payload)
        if magic != _MAGIC or start != through or stop > size:
            break
        entries += _from_batch(decode(payload[_HEAD.size :]))
        through = stop
        at += FRAME_OVERHEAD + len(payload)
    return entries, through


def _to_batch(entries: list[Entry]) -> Batch:
    known: dict[str, int] = {}
    codes = np.array([known.setdefault(entry[0], len(known)) for entry in entries], np.int32)
    numbers = np.array([entry[1:] for entry in entries], np.int64).reshape(-1, 4)
    names = ("seq", "epoch", "at", "length")
    columns = {name: np.ascontiguousarray(numbers[:, n]) for n, name in enumerate(names)}
    return Batch({"channel": Words(codes, tuple(known)), **columns}, len(entries))


def _from_batch(batch: Batch) -> Iterator[Entry]:
    channels = [ChannelId(name) for name in batch["channel"].values]
    named = [channels[code] for code in batch["channel"].codes.tolist()]
    numbers = (batch[name].tolist() for name in ("seq", "epoch", "at", "length"))
    return zip(named, *numbers, strict=True)
