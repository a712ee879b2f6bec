"""Bounds what dead processes of a run without an end leave to be looked at: journals and tracebacks.

Nothing here is needed to go on, or for a verdict: the journals of slots serve people alone, and of those of
drivers only their authors delete anything (`journal_file`). The oldest go first. Those of lives that go on
stay, whatever their size: they bound themselves.
"""

import os
from collections.abc import Collection
from pathlib import Path

from snapline.rundir.directory import RunDirectory

FILES_MAX = 100
"""How many journals of dead lives are kept, and how many tracebacks."""


def tidy(directory: RunDirectory, lives: Collection[str], most: int) -> None:
    """Delete the oldest journals of dead slots until they have at most so many bytes, and old tracebacks.

    `lives` are the slots of the present, as their journals are called, as in `slot-1.7`.
    """
    journals = (directory.path / "journal").glob("slot-*.jsonl")
    _keep_newest([path for path in journals if _life(path) not in lives], most)
    _keep_newest(list(directory.errors.glob("slot-*.txt")), most)


def _life(journal: Path) -> str:
    """The life of which this is the journal, or a segment of it."""
    return ".".join(journal.name.split(".")[:2])


def _keep_newest(paths: list[Path], most: int) -> None:
    total = 0
    sized = [(found.st_mtime_ns, path, found.st_size) for path in paths if (found := _stat(path))]
    for place, (_, path, size) in enumerate(sorted(sized, reverse=True)):
        total += size
        if place >= FILES_MAX or total > most:
            path.unlink(missing_ok=True)


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None
