"""Writes the journal of one process to a file, one line per entry.

A *brief* journal has no entries for messages that are taken and stamped: they would cost more than the
messages themselves. All else (checkpoints, rounds, rollbacks, what was replayed and fenced) is rare. A
*full* one has them, without their records: then it holds all that protocol objects were told and answered,
and fresh ones that are told the same must answer the same.

Entries wait for the next flush, which a process makes with its heartbeat. A process that is killed takes
them along, and may leave half a line: both are legal ends of a journal. A disk that takes nothing, because
it is full, is no reason to end a run: what could not be written waits for the flush after, in order.
"""

import contextlib
import os
from pathlib import Path
from typing import Literal, TypeAlias

from snapline.journal.codec import lines
from snapline.journal.entry import Entry
from snapline.storage.files.places import make_directory, make_file

Detail: TypeAlias = Literal["brief", "full"]


class JournalFile:
    """Appends entries to a file."""

    def __init__(self, path: Path) -> None:
        make_directory(path.parent)
        self._file = os.fdopen(make_file(path, os.O_TRUNC), "wb", buffering=0)
        self._entries: list[Entry] = []
        self._unwritten = b""
        self._begun = False

    def add(self, entry: Entry) -> None:
        """Remember an entry until the next flush."""
        self._entries.append(entry)

    def flush(self) -> None:
        """Write what was added, as far as the disk takes it."""
        head, *body = lines(self._entries)
        if not self._begun:
            body.insert(0, head)
            self._begun = True
        self._entries = []
        self._unwritten += "".join(body).encode()
        with contextlib.suppress(OSError):
            while self._unwritten:
                self._unwritten = self._unwritten[self._file.write(self._unwritten) :]

    def close(self) -> None:
        """Write what is left, and close the file."""
        self.flush()
        self._file.close()
