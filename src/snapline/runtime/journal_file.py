"""The journal of one process, as it is written: one line an entry.

Messages that are delivered and stamped are left out unless asked for: they would cost more than the
messages themselves. All else (checkpoints, rounds, rollbacks, what was replayed and fenced) is rare.
"""

from pathlib import Path

from snapline.core.events import MessageArrived
from snapline.journal.codec import lines
from snapline.journal.entry import Entry, Handled, Stamped


class JournalFile:
    """Appends entries to a file."""

    def __init__(self, path: Path, *, messages: bool = False) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._messages = messages
        self._file = path.open("w")
        self._entries: list[Entry] = []
        self._begun = False

    def add(self, entry: Entry) -> None:
        """Remember an entry until the next flush."""
        if not self._messages:
            if isinstance(entry, Stamped):
                return
            if isinstance(entry, Handled) and isinstance(entry.event, MessageArrived):
                return
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
