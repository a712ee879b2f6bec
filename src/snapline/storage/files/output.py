"""Output as files, for those who read it: what was published, what was written, and what is added."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from snapline.errors import ObjectDamaged, StorageError
from snapline.ids import TaskId
from snapline.storage.api import Extent, OutputPiece, View, WrittenRows
from snapline.storage.files.manifests import FileManifests
from snapline.storage.files.rows import RowTail, lives_in, stretches, task_of, walk_written
from snapline.storage.floor import Floor


class FileOutput:
    """An `OutputReader` over the files that sinks and coordinators leave in a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._manifests = FileManifests(directory / "manifests")

    def tasks(self) -> Sequence[TaskId]:
        """The sink tasks that ever opened an egress, in order."""
        return list(dict.fromkeys(life.task for life in lives_in(self._directory)))

    def pieces(self, task: TaskId, view: View) -> Sequence[OutputPiece]:
        """Where the rows of a sink task lie, in order: one piece per life."""
        if view == "uncommitted":
            lives = lives_in(self._directory)
            return [OutputPiece(life.name, 0, None) for life in lives if life.task == task]
        self._manifests.refresh()
        return self._manifests.chain.pieces(task)

    def published(self) -> int:
        """How many manifests are public by now."""
        self._manifests.refresh()
        return len(self._manifests.chain)

    def floor(self) -> Floor:
        """What was deleted by now."""
        return self._manifests.read_floor()

    def pieces_between(self, task: TaskId, after: int, through: int) -> Sequence[OutputPiece]:
        """Where the rows lie that the manifests after < n <= through made public, in order."""
        chain = self._manifests.chain
        if through > len(chain) or self.floor().place > chain.floor.place:
            self._manifests.refresh()
        return self._manifests.chain.between(task, after, through)

    def read(self, piece: OutputPiece) -> Iterator[WrittenRows]:
        """The rows of a piece, frame by frame."""
        at = piece.start
        try:
            for path, start, stop in stretches(self._directory, *piece):
                if stop is None and not path.exists():
                    continue  # all is read that is there, and this was deleted just now
                for written in walk_written(path, start, stop):
                    yield written
                    at = written.first + len(written.rows)
        except StorageError as error:
            refuse_deleted(self._manifests, piece, at, error)
            raise

    def follow(self) -> "FileFollower":
        """Return a reader that begins at the first row and follows the output as it is written."""
        return FileFollower(self._directory)


def refuse_deleted(
    manifests: FileManifests, piece: OutputPiece, at: int, error: StorageError
) -> None:
    """Raise RowsDeleted if a piece cannot be read because the row at which it is was deleted."""
    task, floor = task_of(piece.file), manifests.read_floor()
    if not isinstance(error, ObjectDamaged) and at < floor.rows.get(task, 0):
        raise floor.deleted_rows(task, at) from error


class FileFollower:
    """An `OutputFollower` over the same files; it keeps a place in each of them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._manifests = FileManifests(directory / "manifests")
        self._manifest = 0  #: how many were read
        self._tails: dict[Path, RowTail] = {}

    def published(self) -> Iterator[Mapping[TaskId, Extent]]:
        """The manifests that came since the last call, one after the other. Raises RowsDeleted."""
        while (extents := self._manifests.at(self._manifest + 1)) is not None:
            self._manifest += 1
            yield extents

    def read(self, piece: OutputPiece) -> Iterator[WrittenRows]:
        """The rows of a piece that were not read before."""
        at = piece.start
        try:
            for path, start, stop in stretches(self._directory, *piece):
                tail = self._tails.setdefault(path, RowTail(path))
                for written in tail.read(start, stop):
                    yield written
                    at = written.first + len(written.rows)
        except StorageError as error:
            refuse_deleted(self._manifests, piece, at, error)
            raise
