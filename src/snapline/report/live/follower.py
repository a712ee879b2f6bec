"""Follows the journals of a run: reads what was appended to each file since the last time, and no more."""

from collections.abc import Iterable
from pathlib import Path

from snapline.errors import SnaplineError
from snapline.journal.codec import read
from snapline.journal.entry import Entry
from snapline.protocols import PROTOCOLS
from snapline.report.page.run_page import parts_of
from snapline.report.run.reading import JOURNAL_BYTES_MAX, in_order, reported_run
from snapline.report.run.reported import ReportedRun
from snapline.rundir.directory import RunDirectory
from snapline.rundir.journal_file import driver_journals

_NONSENSE = (SnaplineError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class _FollowedFile:
    """One journal file, as far as it was read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: list[Entry] = []
        self._offset = 0
        self._header = ""

    def read(self, protocol: str) -> bool:
        """Read the lines that were completed since the last time; return whether there were any."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._offset)
                new = file.read(JOURNAL_BYTES_MAX)
        except OSError:
            return False  # a journal without an end drops its oldest parts
        whole = new[: new.rfind(b"\n") + 1]
        if not whole:
            return False
        self._offset += len(whole)
        lines = whole.decode(errors="replace").splitlines(keepends=True)
        if not self._header:
            self._header, lines = lines[0], lines[1:]
        try:
            self.entries += read([self._header, *lines], PROTOCOLS.get(protocol))
        except _NONSENSE:
            return False  # a damaged line: `report` says so when the run is over
        return True


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
        changed = False
        for path in sorted(folder.glob("*.jsonl")):
            followed = self._files.setdefault(path, _FollowedFile(path))
            changed |= followed.read(protocol)
        if not self._over and (self.directory.path / "result.json").is_file():
            self._over = self.directory.result() is not None
            changed |= self._over
        return changed

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
            if path.name.startswith("slot-")
            for entry in in_order(followed.entries)
        ]
        return reported_run(self.directory, drivers, slots, {})

    def _entries(self, path: Path) -> Iterable[Entry]:
        followed = self._files.get(path)
        return () if followed is None else followed.entries


def follow_run(path: Path) -> JournalFollower:
    """Follow the run in a directory."""
    return JournalFollower(RunDirectory(path))
