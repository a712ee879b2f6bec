"""What was discarded, as files: one for each life of a task that discarded anything."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from snapline.errors import ObjectDamaged
from snapline.ids import ChannelId
from snapline.storage.api import Life
from snapline.storage.discards.port import Discard, IdentityKind
from snapline.storage.files.frames import Appender, scan
from snapline.storage.files.places import make_directory

SUFFIX: Final = ".discards"

_HEAD: Final = struct.Struct("<BHQ")  # kind, length of the channel's name, number of the message
_KINDS: Final[tuple[IdentityKind, ...]] = ("id", "hash")


class FileDiscards:
    """`Discards` in a file, which is made with the first message."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: Appender | None = None

    def append(self, discard: Discard) -> None:
        """Take down a message."""
        if self._file is None:
            make_directory(self._path.parent)
            self._file = Appender(self._path)
        name = discard.channel.encode()
        head = _HEAD.pack(_KINDS.index(discard.kind), len(name), discard.seq)
        self._file.append(head + name, np.ascontiguousarray(discard.identities, "<i8"))

    def flush(self) -> None:
        """Hand all that was taken down to the operating system."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Let go of the file; what was not flushed is gone."""
        if self._file is not None:
            self._file.close()


class FileDiscardStore:
    """A `DiscardStore` in a directory, which is made when something is discarded."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def open(self, life: Life) -> FileDiscards:
        """Where a life of a task writes."""
        return FileDiscards(self._directory / f"{life.name}{SUFFIX}")

    def read(self) -> Iterator[tuple[str, Discard]]:
        """Everything that was flushed; a torn frame at the end of a file is none. Raises ObjectDamaged."""
        for path in sorted(self._directory.glob(f"*{SUFFIX}")):
            for _, payload in scan(path).frames:
                yield path.name.removesuffix(SUFFIX), _discard(path, payload)


def _discard(path: Path, payload: memoryview) -> Discard:
    try:
        kind, length, seq = _HEAD.unpack_from(payload)
        rest = payload[_HEAD.size :]
        channel = ChannelId(bytes(rest[:length]).decode())
        identities = np.frombuffer(rest[length:], "<i8").astype(np.int64)
        return Discard(channel, seq, _KINDS[kind], identities)
    except (struct.error, ValueError, IndexError) as error:
        raise ObjectDamaged(f"{path} holds a frame that tells of no message: {error}") from error
