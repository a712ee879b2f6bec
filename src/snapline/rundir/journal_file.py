"""Writes the journal of one process to a file, one line per entry.

A *brief* journal has no entries for messages that are taken and stamped: they would cost more than the
messages themselves. All else (checkpoints, rounds, rollbacks, what was replayed and fenced) is rare. A
*full* one has them, without their records: then it holds all that protocol objects were told and answered,
and fresh ones that are told the same must answer the same.

Entries wait for the next flush, which a process makes with its heartbeat. A process that is killed takes
them along, and may leave half a line: both are legal ends of a journal. A disk that takes nothing, because
it is full, is no reason to end a run: what could not be written waits for the flush after, in order.

The journal of a run without an end is *bounded*. It is written in segments, `NAME.jsonl`, `NAME.2.jsonl`
and so on, and when there are too many, the oldest is deleted. What a verdict needs of it (which faults
struck, what was lost when, that lines were decided) is in `NAME.0.jsonl` BEFORE that: some hundred bytes
per failure.
"""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypeAlias

from snapline.journal.codec import lines
from snapline.journal.entry import Entry, Happened
from snapline.journal.fault_happenings import FaultHappening
from snapline.journal.happenings import JobRunning, LineDecided, SlotLost, SlotRunning
from snapline.journal.loss_happenings import LossHappening
from snapline.storage.files.places import make_directory, make_file, write_whole

Detail: TypeAlias = Literal["brief", "full"]

BOUNDED_BYTES = 64 << 20
"""What the journals of a run without an end take, in all; half of it is the driver's."""

SEGMENTS = 4
"""In how many segments a bounded journal is written."""

_Needed: TypeAlias = FaultHappening | SlotLost | JobRunning | SlotRunning | LossHappening


class JournalFile:
    """Appends entries to a file; with `most`, to segments that have about so many bytes together."""

    def __init__(self, path: Path, most: int | None = None) -> None:
        make_directory(path.parent)
        self._path = path
        self._most = most
        self._entries: list[Entry] = []
        self._unwritten = b""
        self._segments: list[_Segment] = []  #: those that are there, the one that is written last
        self._needed = Needed()  #: what a verdict needs of those that are not
        self._number = 0  #: of the last segment
        self._next_segment()

    def add(self, entry: Entry) -> None:
        """Remember an entry until the next flush."""
        self._entries.append(entry)

    def flush(self) -> None:
        """Write what was added, as far as the disk takes it."""
        head, *body = lines(self._entries)
        segment = self._segments[-1]
        if not segment.size:
            self._unwritten += head.encode()
        segment.size += sum(map(len, body)) + len(head) * (not segment.size)
        if self._most is not None:
            segment.needed.see(zip(self._entries, body, strict=True))
        self._entries = []
        self._unwritten += "".join(body).encode()
        with contextlib.suppress(OSError):
            while self._unwritten:
                self._unwritten = self._unwritten[self._file.write(self._unwritten) :]
            if self._most is not None and segment.size > self._most // SEGMENTS:
                full = self._file
                self._next_segment()
                full.close()
            self._drop()

    def _next_segment(self) -> None:
        name = "" if self._number == 0 else f".{self._number + 1}"
        path = self._path.with_name(f"{self._path.stem}{name}.jsonl")
        self._file = os.fdopen(make_file(path, os.O_TRUNC), "wb", buffering=0)
        self._number += 1
        self._segments.append(_Segment(path))

    def _drop(self) -> None:
        """Delete the oldest segments, once what is needed of them is durable."""
        while len(self._segments) > SEGMENTS:
            oldest = self._segments[0]
            self._needed.add(oldest.needed)
            oldest.needed = Needed()  # if the disk refuses, this is done again
            if kept := self._needed.text():
                head = next(lines(()))
                path = self._path.with_name(f"{self._path.stem}.0.jsonl")
                write_whole(path, head + kept, durable=True)
            oldest.path.unlink(missing_ok=True)
            del self._segments[0]

    def close(self) -> None:
        """Write what is left, and close the file."""
        self.flush()
        self._file.close()


class _Segment:
    """One file of a journal."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self.needed = Needed()


class Needed:
    """The lines of a driver's journal that a verdict needs, and the first and the last line decided."""

    def __init__(self) -> None:
        self.first = self.last = ""
        self.others: list[str] = []

    def see(self, entries: Iterable[tuple[Entry, str]]) -> None:
        """Take entries of a journal with the lines in which they stand."""
        for entry, line in entries:
            if not isinstance(entry, Happened):
                continue
            if isinstance(entry.what, LineDecided):
                self.last = line
                if entry.what.epoch == entry.epoch:  # a line was committed, and no epoch begun
                    self.first = self.first or line
            elif isinstance(entry.what, _Needed):
                self.others.append(line)

    def add(self, later: "Needed") -> None:
        """Take what is needed of a later part of the journal."""
        self.first = self.first or later.first
        self.last = later.last or self.last
        self.others += later.others

    def text(self) -> str:
        """All these lines. Readers go by the times of entries, not by their order."""
        last = self.last if self.last != self.first else ""
        return "".join([self.first, *self.others, last])


# Reading.


def driver_journals(journals: Path) -> list[list[Path]]:
    """The journals of the drivers of a run: the segments of each that are there, in order."""
    found: dict[str, list[tuple[int, Path]]] = {}
    for path in sorted(journals.glob("driver-*.jsonl")):
        name, *number, _ = path.name.split(".")
        known = number[0] if number and number[0].isdecimal() else "1"
        found.setdefault(name, []).append((int(known), path))
    return [[path for _, path in sorted(segments)] for segments in found.values()]
