"""Follows the journals of a run: reads what was appended to each file since the last time, and no more.

A run without an end deletes its oldest journals, and what was read of them is forgotten with them, so that
a page that is open for weeks takes no more memory than one that was opened just now. Of full journals no
more is held than a page of a run that is over would show.
"""

import os
from collections.abc import Collection, Iterable
from pathlib import Path

from snapline.errors import SnaplineError
from snapline.journal.codec import read
from snapline.journal.entry import Entry
from snapline.protocols import PROTOCOLS
from snapline.report.page.run_page import parts_of
from snapline.report.run.reading import (
    JOURNAL_BYTES_MAX,
    JOURNALS_BYTES_MAX,
    in_order,
    reported_run,
    too_large,
)
from snapline.report.run.reported import ReportedRun
from snapline.rundir.directory import RunDirectory
from snapline.rundir.journal_file import driver_journals

_NONSENSE = (SnaplineError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class _FollowedFile:
    """One journal file, as far as it was read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: list[Entry] = []
        self.bytes = 0  #: how far it was read
        self.left_out = False  #: it is too large: nothing of it is shown, or read any more
        self._header = ""
        self._inode: int | None = None

    def read(self, protocol: str) -> bool:
        """Read the lines that were completed since the last time; return whether there were any."""
        try:
            with self.path.open("rb") as file:
                found = os.fstat(file.fileno())
                if found.st_ino != self._inode or found.st_size < self.bytes:
                    self._begin_again(found.st_ino)
                file.seek(self.bytes)
                new = file.read(JOURNAL_BYTES_MAX)
        except OSError:
            return False  # a journal without an end drops its oldest parts
        whole = new[: new.rfind(b"\n") + 1]
        if not whole:
            return False
        self.bytes += len(whole)
        lines = whole.decode(errors="replace").splitlines(keepends=True)
        if not self._header:
            self._header, lines = lines[0], lines[1:]
        try:
            self.entries += read([self._header, *lines], PROTOCOLS.get(protocol))
        except _NONSENSE:
            return False  # a damaged line: `report` says so when the run is over
        return True

    def _begin_again(self, inode: int) -> None:
        """Forget what was read: this is another file in its place, or one that was written anew."""
        self.entries, self.bytes = [], 0
        self._header, self._inode = "", inode

    def leave_out(self) -> None:
        """Show nothing of it any more."""
        self.entries, self.left_out = [], True


class JournalFollower:
    """All journals of a run, and what its page shows of them."""

    def __init__(self, directory: RunDirectory) -> None:
        self.directory = directory
        self.name = directory.name
        self._files: dict[Path, _FollowedFile] = {}
        self._over = False

    def advance(self) -> bool:
        """Read what is new; return whether the page has to change. Raises UsageError."""
        folder = self.directory.path / "journal"
        protocol = str(self.directory.spec().get("protocol"))
        there = sorted(folder.glob("*.jsonl"))
        changed = self._forget_all_but(there)
        for path in there:
            followed = self._files.setdefault(path, _FollowedFile(path))
            if not followed.left_out:
                changed |= followed.read(protocol)
                self._leave_out_if_too_large(followed)
        if not self._over and (self.directory.path / "result.json").is_file():
            self._over = self.directory.result() is not None
            changed |= self._over
        return changed

    def _forget_all_but(self, there: Collection[Path]) -> bool:
        """Forget the files that were deleted; return whether anything of them was shown."""
        gone = set(self._files).difference(there)
        forgotten = [self._files.pop(path) for path in gone]
        return any(each.entries for each in forgotten)

    def _leave_out_if_too_large(self, followed: _FollowedFile) -> None:
        """Hold no more of the journals of slots than a page shows; those of drivers are all needed."""
        if not _is_of_slot(followed.path):
            return
        slots = [each for path, each in self._files.items() if _is_of_slot(path)]
        total = sum(each.bytes for each in slots if not each.left_out)
        if followed.bytes > JOURNAL_BYTES_MAX or total > JOURNALS_BYTES_MAX:
            followed.leave_out()

    def parts(self) -> dict[str, str]:
        """The parts of the page as they are now."""
        return parts_of(self.reported())

    def reported(self) -> ReportedRun:
        """What the page shows now. How old rows were when they became public is known at the end."""
        drivers = [
            entry
            for segments in driver_journals(self.directory.path / "journal")
            for entry in in_order([e for path in segments for e in self._entries(path)])
        ]
        slots = [
            entry
            for path, followed in self._files.items()
            if _is_of_slot(path)
            for entry in in_order(followed.entries)
        ]
        left_out = [path.name for path, followed in self._files.items() if followed.left_out]
        return reported_run(self.directory, drivers, slots, {}, gap=too_large(left_out))

    def _entries(self, path: Path) -> Iterable[Entry]:
        followed = self._files.get(path)
        return () if followed is None else followed.entries


def _is_of_slot(path: Path) -> bool:
    return path.name.startswith("slot-")


def follow_run(path: Path) -> JournalFollower:
    """Follow the run in a directory."""
    return JournalFollower(RunDirectory(path))
