"""Output as files, for those who read it: what was published, what was written, and what is added."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from snapline.ids import TaskId, task_id
from snapline.storage.api import Extent, OutputPiece, View, WrittenRows
from snapline.storage.files.manifests import FileManifests
from snapline.storage.files.outlet import SUFFIX
from snapline.storage.files.places import named_in
from snapline.storage.files.rows import RowTail, walk_written

_NAME = re.compile(r"(?P<task>.+)\.e(?P<epoch>\d+)\.i(?P<incarnation>\d+)" + re.escape(SUFFIX))


class FileOutput:
    """An `OutputReader` over the files that sinks and coordinators leave in a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._manifests = FileManifests(directory / "manifests")

    def tasks(self) -> Sequence[TaskId]:
        """The sink tasks that ever opened an egress, in order."""
        return list(self._files())

    def pieces(self, task: TaskId, view: View) -> Sequence[OutputPiece]:
        """Where the rows of a sink task lie, in order: one piece per file."""
        if view == "uncommitted":
            return [OutputPiece(file, 0, None) for file in self._files().get(task, ())]
        self._manifests.refresh()
        return self._manifests.chain.pieces(task)

    def published(self) -> int:
        """How many manifests are public by now."""
        self._manifests.refresh()
        return len(self._manifests.chain)

    def pieces_between(self, task: TaskId, after: int, through: int) -> Sequence[OutputPiece]:
        """Where the rows lie that the manifests after < n <= through made public, in order."""
        if through > len(self._manifests.chain):
            self._manifests.refresh()
        return self._manifests.chain.between(task, after, through)

    def read(self, piece: OutputPiece) -> Iterator[WrittenRows]:
        """The rows of a piece, frame by frame."""
        return walk_written(self._path(piece.file), piece.start, piece.stop)

    def follow(self) -> "FileFollower":
        """Return a reader that begins at the first row and follows the output as it is written."""
        return FileFollower(self._directory)

    def _files(self) -> dict[TaskId, list[str]]:
        """The egress files of each sink task, in the order of its lives."""
        lives = []
        for path in self._directory.glob(f"*{SUFFIX}"):
            if match := _NAME.fullmatch(path.name):
                name, _, index = match["task"].rpartition("-")
                rank = int(match["epoch"]), int(match["incarnation"])
                lives.append((task_id(name, int(index)), rank, path.stem))
        files: dict[TaskId, list[str]] = {}
        for task, _, file in sorted(lives):
            files.setdefault(task, []).append(file)
        return files

    def _path(self, file: str) -> Path:
        return named_in(self._directory, f"{file}{SUFFIX}")


class FileFollower:
    """An `OutputFollower` over the same files; it keeps a place in each of them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._manifests = FileManifests(directory / "manifests")
        self._manifest = 0  #: how many were read
        self._tails: dict[str, RowTail] = {}

    def published(self) -> Iterator[Mapping[TaskId, Extent]]:
        """The manifests that came since the last call, one after the other."""
        while (extents := self._manifests.at(self._manifest + 1)) is not None:
            self._manifest += 1
            yield extents

    def read(self, piece: OutputPiece) -> Iterator[WrittenRows]:
        """The rows of a piece that were not read before."""
        tail = self._tails.get(piece.file)
        if tail is None:
            tail = RowTail(named_in(self._directory, f"{piece.file}{SUFFIX}"))
            self._tails[piece.file] = tail
        return tail.read(piece.start, piece.stop)
