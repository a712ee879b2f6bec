"""Output that is also written as Parquet files, into a directory of the user's: every row exactly once.

The egress and the manifests stay what they are, and say what is public. Beside them each life of a sink
task writes *drafts*: hidden Parquet files, whole and durable, each with the rows between two checkpoints.
Once a manifest is public, the drafts with its rows get names in the open: `part-<manifest>-<task>-<rows>`.

D1  A manifest ends where a checkpoint was taken, so it consists of whole drafts of one life.
D2  A draft is durable BEFORE the checkpoint behind it counts, so whatever a line covers has its drafts.
D3  A draft is named by the life that wrote it, and gets a name in the open only by a manifest, which names
    that life. What a zombie writes, and what a rollback took back, stays hidden.
D4  The name in the open follows from the manifest and the draft. Giving it is one rename: whoever does it
    again, after a crash or because two drivers think that it is theirs to do, finds it done.
D5  A decision is followed by another one only when all of its manifests are public and its drafts renamed;
    whoever resumes a run does both again for the last decision. So no manifest is left out.
"""

import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import pyarrow as pa
from pyarrow import parquet

from snapline.batch import Batch
from snapline.errors import ObjectMissing, UsageError
from snapline.ids import Epoch, TaskId, operator_of
from snapline.storage.api import Egress, Extent, Life, Outlet, PendingSync
from snapline.storage.column_types import Meanings
from snapline.storage.files.frames import unavailable_on_os_error
from snapline.storage.files.places import (
    make_directory,
    make_file,
    sync_directory,
    whole_file,
)
from snapline.storage.parquet.arrow import to_spark

HIDDEN = ".snapline"
"""The directory for drafts, in that of the sink; readers of Parquet leave out names that begin so."""

_OWNER = "owner.json"
_DRAFT_OF = re.compile(r"(?:\.new-)?(?P<file>.+\.e(?P<epoch>\d+)\.i\d+)-\d+-\d+\.parquet.*")
Rows: TypeAlias = tuple[int, int]
"""Rows start <= n < stop of a task."""


# Whose directory it is.


def check_folder(folder: Path, run: str | None) -> None:
    """Raise UsageError unless a directory is this run's; for a new run (None): unless it is empty."""
    owner = _owner(folder)
    if run is not None:
        if owner != run:
            raise UsageError(
                f"{folder} does not hold the output of this run, and cannot go on with it"
            )
        return
    try:
        there = next(iter(sorted(path.name for path in folder.iterdir())), None)
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"output cannot be written to {folder}: {error.strerror}") from error
    if owner is not None:
        raise UsageError(
            f"output cannot be written to {folder}: it holds that of another run; name another directory"
        )
    if there is not None:
        raise UsageError(
            f"output cannot be written to {folder}: it is not empty ({there}); name another directory, "
            "or empty it"
        )


def claim_folder(folder: Path, run: str) -> None:
    """Make a directory that of this run. UsageError if it cannot be, or is another's meanwhile."""
    try:
        make_directory(folder / HIDDEN)
        fd = make_file(folder / HIDDEN / _OWNER)
        with os.fdopen(fd, "w") as file:
            json.dump({"run": run}, file)
            file.flush()
            os.fsync(file.fileno())
        sync_directory(folder / HIDDEN)
    except FileExistsError:
        raise UsageError(f"output cannot be written to {folder}: another run does so") from None
    except OSError as error:
        raise UsageError(f"output cannot be written to {folder}: {error.strerror}") from error


def release_folder(folder: Path) -> None:
    """Undo `claim_folder`, for a run that did not begin: the directory is empty again."""
    with unavailable_on_os_error(f"empty {folder}"):
        (folder / HIDDEN / _OWNER).unlink(missing_ok=True)
        (folder / HIDDEN).rmdir()


def remove_drafts(folder: Path) -> None:
    """Remove what was never published, once a run is over: by rollbacks, and by processes that died."""
    with unavailable_on_os_error(f"remove drafts in {folder}"):
        for path in (folder / HIDDEN).iterdir():
            if path.name != _OWNER:
                path.unlink(missing_ok=True)


def _owner(folder: Path) -> Any:
    try:
        return json.loads((folder / HIDDEN / _OWNER).read_text())["run"]
    except (OSError, ValueError, LookupError, TypeError):
        return None


# Writing drafts.


class ParquetOutlet:
    """An `Outlet` whose sinks also write Parquet files, each into a directory of its own."""

    def __init__(
        self,
        outlet: Outlet,
        folders: Mapping[str, Path],
        meanings: Mapping[str, Meanings] = MappingProxyType({}),
    ) -> None:
        self._outlet = outlet
        self._folders = folders
        self._meanings = (
            meanings  #: of the columns of sinks that have dates, timestamps or decimals
        )

    def open(self, life: Life, position: int) -> Egress:
        """The egress of one life, which goes on at `position`."""
        egress, folder = self._outlet.open(life, position), self._folder(life.task)
        if folder is None:
            return egress
        meanings = self._meanings.get(operator_of(life.task), {})
        return DraftingEgress(egress, folder / HIDDEN, meanings)

    def publish(self, number: int, extents: Mapping[TaskId, Extent]) -> bool:
        """Make manifest `number` public, THEN give its drafts their names in the open; idempotent."""
        if not self._outlet.publish(number, extents):
            return False
        for task, extent in extents.items():
            folder = self._folder(task)
            if folder is not None and extent.start < extent.stop:
                _reveal(folder, f"part-{number:06}-{task.rpartition('/')[2]}", extent)
        return True

    def compact(self, through: int) -> None:
        """Keep the manifests up to a number in few objects. The files of the user stay as they are."""
        self._outlet.compact(through)

    def last_published(self) -> int:
        """The number of the last manifest that is public; 0 if nothing is."""
        return self._outlet.last_published()

    def check(
        self,
        decided: Mapping[int, Mapping[TaskId, Extent]],
        through: int,
        rows: Mapping[TaskId, int],
    ) -> None:
        """Compare what is public with what was decided: see `ManifestChain.hold_against`."""
        self._outlet.check(decided, through, rows)

    def sweep(self, before: Epoch, held: Collection[str], *, written: bool) -> None:
        """Delete the drafts of past epochs that no manifest will name, and what the outlet deletes."""
        self._outlet.sweep(before, held, written=written)
        for folder in self._folders.values():
            with unavailable_on_os_error(f"remove drafts in {folder}"):
                for path in (folder / HIDDEN).iterdir():
                    found = _DRAFT_OF.fullmatch(path.name)
                    if found and int(found["epoch"]) < before and found["file"] not in held:
                        path.unlink(missing_ok=True)

    def _folder(self, task: TaskId) -> Path | None:
        return self._folders.get(operator_of(task))


@dataclass(frozen=True, slots=True, eq=False)
class _Cut:
    """The rows between two checkpoints, which become one draft."""

    rows: Rows
    batches: Sequence[Batch]


class DraftingEgress:
    """An `Egress` that also writes what lies between two cuts as a draft."""

    def __init__(
        self, egress: Egress, hidden: Path, meanings: Meanings = MappingProxyType({})
    ) -> None:
        self._egress = egress
        self._hidden = hidden
        self._meanings = meanings
        self._start = egress.position  #: the first row behind the last cut
        self._batches: list[Batch] = []  #: what was appended since
        self._cuts: list[_Cut] = []  #: of which no draft is known to be durable

    @property
    def file(self) -> str:
        """The name of the file, unique to this life."""
        return self._egress.file

    @property
    def position(self) -> int:
        """Rows of this timeline that were appended, earlier lives included."""
        return self._egress.position

    def append(self, batch: Batch) -> None:
        """Add rows; durable only after the next `sync`."""
        self._egress.append(batch)
        if len(batch):
            self._batches.append(batch)

    def cut(self) -> None:
        """Note that what was appended so far may become public without what follows."""
        if self._batches:
            self._cuts.append(_Cut((self._start, self.position), self._batches))
            self._start, self._batches = self.position, []
        self._egress.cut()

    def flush(self) -> None:
        """Let everything appended so far be read by others, durable or not."""
        self._egress.flush()

    def sync(self) -> None:
        """Make everything appended so far durable."""
        pending = self.start_sync()
        pending.wait()
        pending.finish()

    def start_sync(self) -> PendingSync:
        """Begin to make everything appended so far durable, in the background."""
        return _DraftSync(self._egress.start_sync(), self, tuple(self._cuts))

    def write(self, cut: _Cut) -> None:
        """Write a draft, in any thread; the same one again does no harm."""
        schema = cut.batches[0].schema
        rows = [to_spark(batch, schema, self._meanings) for batch in cut.batches]
        table = pa.Table.from_batches(rows)
        path = self._hidden / f"{self.file}-{cut.rows[0]}-{cut.rows[1]}.parquet"
        with unavailable_on_os_error(f"write {path}"), whole_file(path, durable=True) as file:
            parquet.write_table(table, file)

    def forget(self, cuts: Sequence[_Cut]) -> None:
        """Let go of rows whose drafts are durable."""
        self._cuts = [cut for cut in self._cuts if cut not in cuts]


@dataclass(frozen=True, slots=True)
class _DraftSync:
    """A `PendingSync` of an egress and of its drafts."""

    egress: PendingSync
    owner: DraftingEgress
    cuts: Sequence[_Cut]

    def wait(self) -> None:
        """Write the drafts, and wait for the disk."""
        for cut in self.cuts:
            self.owner.write(cut)
        self.egress.wait()

    def finish(self) -> None:
        """Note that all of it is durable."""
        self.egress.finish()
        self.owner.forget(self.cuts)


# Publishing them.


def _reveal(folder: Path, name: str, extent: Extent) -> None:
    """Rename the drafts of an extent, one by one; those that have their names already stay."""
    with unavailable_on_os_error(f"publish {folder}"):
        drafts = _found(folder / HIDDEN, extent.file)
        shown: dict[int, Rows] | None = None  # looked for only if a draft is not there
        at = extent.start
        while at < extent.stop:
            rows = drafts.get(at)
            if rows is None:
                shown = _found(folder, name) if shown is None else shown
                rows = shown.get(at)
            else:
                _rename(folder, f"{extent.file}-{rows[0]}-{rows[1]}.parquet", name, rows)
            if rows is None or rows[1] > extent.stop:
                raise ObjectMissing(
                    f"{folder}: the rows from {at} to {extent.stop} of {name} are gone"
                )
            at = rows[1]
        sync_directory(folder)


def _rename(folder: Path, draft: str, name: str, rows: Rows) -> None:
    shown = folder / f"{name}-{rows[0]}-{rows[1]}.parquet"
    try:
        (folder / HIDDEN / draft).rename(shown)
    except FileNotFoundError:
        if not shown.exists():  # if it does, another driver was quicker
            raise ObjectMissing(f"{folder / HIDDEN / draft} is gone") from None


def _found(folder: Path, name: str) -> dict[int, Rows]:
    """The files of a name, by the first of their rows."""
    pattern = re.compile(rf"{re.escape(name)}-(\d+)-(\d+)\.parquet")
    matches = [match for path in folder.iterdir() if (match := pattern.fullmatch(path.name))]
    return {int(match[1]): (int(match[1]), int(match[2])) for match in matches}
