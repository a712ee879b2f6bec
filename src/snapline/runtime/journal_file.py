"""The journal of one process, as it is written: one line an entry.

A *brief* journal has no entries for messages that are taken and stamped: they would cost more than the
messages themselves. All else (checkpoints, rounds, rollbacks, what was replayed and fenced) is rare. A
*full* one has them, without their records: then it holds all that protocol objects were told and answered,
and fresh ones that are told the same must answer the same.

Entries wait for the next flush, which a process makes with its heartbeat. A process that is killed takes
them along, and may leave half a line: both are legal ends of a journal.
"""

from pathlib import Path
from typing import Literal, TypeAlias

from snapline.journal.codec import lines
from snapline.journal.entry import Entry

Detail: TypeAlias = Literal["brief", "full"]


class JournalFile:
    """Appends entries to a file."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("w")
        self._entries: list[Entry] = []
        self._begun = False

    def add(self, entry: Entry) -> None:
        """Remember an entry until the next flush."""
        self._entries.append(entry)

    def flush(self) -> None:
        """Write what was added."""
        head, *body = lines(self._entries)
        if not self._begun:
            self._file.write(head)
            self._begun = True
        self._file.writelines(body)
        self._file.flush()
        self._entries = []

    def close(self) -> None:
        """Write the rest."""
        self.flush()
        self._file.close()
