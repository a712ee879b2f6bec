"""Reads the output of a run as a stranger would, from the files alone, and checks everything itself.

Whoever publishes output follows rules (`storage.manifest`). A judge that read through the same code would
trust the rules that it has to judge, so this reader has rules of its own, for the files as they lie there:

R1  The manifests are numbered from 1 on without a gap, or from behind the floor. Each lies in a bundle of
    128, or in a file of its own, or in both, and is the same then. Nothing else lies beside them, but what
    lies below the floor.
R2  The manifest at place n has the number n, and its bytes are those that were stored.
R3  The extent of a sink task continues exactly where its last one ended.
R4  An extent lies in an egress file of that task, and once a task has gone on to another file it never
    goes back to an earlier one.
R5  The rows of a file are numbered without gaps, and all that an extent names are there, undamaged. A file
    may be continued by others, each with its first row in its name, where the one before ends.
R6  The highest floor says how many manifests were deleted, when the last of them was published, and at
    which row of each sink task the next one goes on. Below it nothing is read.

`BrokenChain` says which link is broken: a reader would see rows twice, or not at all. A damaged file, of
which nobody can say what it held, raises the errors of the storage.
"""

import json
import re
import struct
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from snapline.batch import Batch, concat
from snapline.batch_form import decode
from snapline.errors import ObjectDamaged, StorageError
from snapline.ids import TaskId
from snapline.rundir.directory import RunDirectory
from snapline.rundir.output_rows import POSITION_BITS
from snapline.storage.api import View
from snapline.storage.codec import digest_of
from snapline.storage.files.frames import scan, walk
from snapline.validate.columns import Ints

_HEAD: Final = struct.Struct("<QIQ")  # of a frame: number of the first row, rows, Unix time in ms
_DIGEST_BYTES: Final = len(digest_of(b"")) // 2
STAMPS: Final = ("position", "written")
_BUNDLE: Final = 128  # manifests in a bundle
_OBJECT: Final = re.compile(r"(?:([1-9]\d*)-)?([1-9]\d*)\.obj", re.ASCII)
_DRAFT: Final = ".new-"  # begins the name of a draft, which a killed writer leaves behind


class BrokenChain(StorageError):
    """The manifests contradict each other, or one is gone: some rows would be read twice, or never."""


@dataclass(frozen=True, slots=True)
class ChainLink:
    """Rows start <= n < stop of a sink task, which one manifest made public."""

    task: TaskId
    file: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Deleted:
    """What was public once, and was deleted on purpose: `retain` says for how long output is kept."""

    place: int  # so many manifests, from the first one on
    rows: Mapping[TaskId, int]  # so many rows of each sink task
    at_ms: int  # when the last of them was published: Unix time

    @property
    def until(self) -> str:
        """When the last of them was published, as people write it."""
        return datetime.fromtimestamp(self.at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


@dataclass(slots=True)
class _Task:
    """What is known of a sink task after the manifests so far."""

    stop: int = 0  #: how many of its rows are public so far
    files: list[str] = field(default_factory=list)  #: in the order in which it used them


@dataclass(frozen=True, slots=True)
class SinkRows:
    """The rows of a sink, and beside them the two columns of their stamps.

    These are `position`, and `written` in ms of the run. They are kept apart, because a sink may have
    columns of these names itself.
    """

    rows: Batch
    stamps: Batch

    @classmethod
    def of_stamped(cls, batch: Batch) -> "SinkRows":
        """Take the stamps off rows that have them as columns."""
        own = [name for name in batch.columns if name not in STAMPS]
        return cls(batch.select(*own), batch.select(*(STAMPS if batch.columns else ())))

    @property
    def written(self) -> tuple[Ints, Ints]:
        """The slot that wrote each row, and when it did."""
        return self.stamps["position"] >> POSITION_BITS, self.stamps["written"]

    @property
    def stamped(self) -> Batch:
        """The rows with their stamps, which hide columns of the same names."""
        return self.rows.with_columns(**self.stamps.columns) if len(self.rows) else self.rows


def read_sinks(
    directory: RunDirectory, sinks: Mapping[str, Sequence[TaskId]], view: View
) -> dict[str, SinkRows]:
    """Read the rows of each sink, with their stamps.

    Raises BrokenChain, or another StorageError if a file cannot be read.
    """
    origin_ms = int((directory.spec().get("origin_s") or 0) * 1000)
    output = directory.path / "output"
    known = [task for tasks in sinks.values() for task in tasks]
    if view == "committed":
        links = read_chain(output, known)
    else:
        links = [ChainLink(task, file, 0, -1) for task in known for file in _files(output, task)]
    return {
        sink: _rows(output, [lk for task in tasks for lk in links if lk.task == task], origin_ms)
        for sink, tasks in sinks.items()
    }


# The chain of manifests.


def read_chain(output: Path, known: Sequence[TaskId]) -> list[ChainLink]:
    """All that was published by the sink tasks that are `known`: one link per file, in order.

    Raises BrokenChain.
    """
    deleted = read_deleted(output)
    gone = deleted.rows if deleted is not None else {}
    if strangers := [task for task in gone if task not in known]:
        raise BrokenChain(f"rows of {strangers[0]} were deleted: no such sink")
    tasks = {task: _Task(gone.get(task, 0)) for task in known}
    links: dict[tuple[TaskId, str], ChainLink] = {}  # one per file: its pieces are joined (R3, R4)
    begin = deleted.place + 1 if deleted is not None else 1
    for place, manifest in _manifests(output / "manifests", begin):
        for link in manifest:
            if link.task not in tasks:
                raise BrokenChain(f"manifest {place} publishes rows of {link.task}: no such sink")
            _join(tasks[link.task], link, place)
            if link.start < link.stop:
                first = links.get((link.task, link.file), link)
                links[link.task, link.file] = replace(link, start=first.start)
    return list(links.values())


def read_deleted(output: Path) -> Deleted | None:
    """What was deleted of the output (rule R6); None if nothing was. Raises ObjectDamaged."""
    folder = output / "floors"
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    places = [
        int(found[2]) for name in names if (found := _OBJECT.fullmatch(name)) and not found[1]
    ]
    if not places:
        return None
    path = folder / f"{max(places)}.obj"
    try:
        said = json.loads(_stored(path), object_pairs_hook=_once)
        rows = {TaskId(task): _whole(count) for task, count in said["rows"].items()}
        if {_whole(said["place"]), _whole(said["number"])} != {max(places)}:
            raise ValueError("it is that of another place")
        return Deleted(max(places), rows, _whole(said["at"]))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ObjectDamaged(f"{path} does not say what was deleted: {error}") from error


def _manifests(folder: Path, first: int) -> Iterator[tuple[int, list[ChainLink]]]:
    """The links of each manifest from this place on, in order. BrokenChain if one is missing (rule R1)."""
    paths = folder.iterdir() if folder.is_dir() else ()
    names = {path.name for path in paths if not path.name.startswith(_DRAFT)}
    names -= {name for name in names if (o := _OBJECT.fullmatch(name)) and int(o[2]) < first}
    _refuse_gap(names, first)
    bundled: dict[int, bytes] = {}
    place = first
    while names:
        own, begin = f"{place}.obj", (place - 1) // _BUNDLE * _BUNDLE
        bundle = f"{begin + 1}-{begin + _BUNDLE}.obj"
        if bundle in names:
            names.remove(bundle)
            members = _members(_stored(folder / bundle), folder / bundle)
            bundled = dict(enumerate(members, start=begin + 1))
        found = []
        if place in bundled:
            found.append(_links(bundled[place], folder / bundle, place))
        if own in names:
            names.remove(own)
            found.append(_links(_stored(folder / own), folder / own, place))
        if found[0] != found[-1]:
            raise BrokenChain(f"manifest {place} is there twice, with other rows")
        yield place, found[0]
        place += 1
    while place in bundled:
        yield place, _links(bundled[place], folder, place)
        place += 1


def _refuse_gap(names: Collection[str], first: int) -> None:
    """Raise BrokenChain unless manifests and bundles cover all places from the first one on (rule R1)."""
    at = first
    for begin, last in sorted(map(_places, names)):
        if begin > at:
            others = ", ".join(sorted(names)[:5])
            raise BrokenChain(f"manifest {at} is gone, and there are others: {others}")
        at = max(at, last + 1)


def _places(name: str) -> tuple[int, int]:
    """The first and the last place of a manifest or bundle; beyond all if this is the name of neither."""
    found = _OBJECT.fullmatch(name)
    last = int(found[2]) if found else sys.maxsize
    begin = int(found[1] or last) if found else sys.maxsize
    is_bundle = last % _BUNDLE == 0 and begin == last - _BUNDLE + 1
    return (begin, last) if begin == last or is_bundle else (sys.maxsize, sys.maxsize)


def _stored(path: Path) -> bytes:
    """What was stored in a file (rule R2)."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ObjectDamaged(f"{path} cannot be read: {error.strerror}") from error
    data, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:].hex()
    if digest_of(data) != digest:
        raise ObjectDamaged(f"{path} is not what was stored")
    return data


def _members(data: bytes, path: Path) -> list[bytes]:
    """The manifests of a bundle."""
    try:
        members = json.loads(data, object_pairs_hook=_once)["bundle"]
        if len(members) != _BUNDLE:
            raise ValueError(f"it has {len(members)} manifests")
        return [json.dumps(member).encode() for member in members]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ObjectDamaged(f"{path} is no bundle of manifests: {error}") from error


def _links(data: bytes, path: Path, place: int) -> list[ChainLink]:
    """The links of the manifest at a place (rule R2)."""
    number, links = _parsed(data, path)
    if number != place:
        raise BrokenChain(f"in the place of manifest {place} lies number {number}")
    return links


def _parsed(data: bytes, path: Path) -> tuple[int, list[ChainLink]]:
    try:
        manifest = json.loads(data, object_pairs_hook=_once)
        links = [
            ChainLink(TaskId(task), _name(file), _whole(start), _whole(stop))
            for task, (file, start, stop) in manifest["extents"].items()
        ]
        return _whole(manifest["number"]), links
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ObjectDamaged(f"{path} is no manifest: {error}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. Raises ValueError if a name stands there twice: one value would be ignored."""
    if len(found := dict(pairs)) != len(pairs):
        raise ValueError("a name stands there twice")
    return found


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no whole number")
    return value


def _name(value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise TypeError(f"{value!r} is no name of a file")
    return value


def _join(task: _Task, link: ChainLink, place: int) -> None:
    """Check that a link continues the output of its task (rules R3 and R4)."""
    said = f"manifest {place}: rows {link.start} to {link.stop} of {link.task}"
    if link.stop < link.start:
        raise BrokenChain(f"{said} end before they begin")
    if link.start < task.stop:
        raise BrokenChain(f"{said} overlap what is public through row {task.stop}")
    if link.start > task.stop:
        raise BrokenChain(f"{said} leave a gap behind row {task.stop}, where the last one ended")
    if not _belongs(link.file, link.task):
        raise BrokenChain(f"{said} lie in {link.file}, a file of somebody else")
    if link.file in task.files[:-1]:
        raise BrokenChain(f"{said} lie in {link.file}, which was left before")
    if link.file not in task.files:
        task.files.append(link.file)
    task.stop = link.stop


def _belongs(file: str, task: TaskId) -> bool:
    name = task.replace("/", "-")
    return file.startswith(f"{name}.e") and "/" not in file and ".." not in file


# The rows of files.


def _files(output: Path, task: TaskId) -> list[str]:
    """The lives of a task that have files, in order."""
    life = re.compile(rf"({re.escape(task.replace('/', '-'))}\.e(\d+)\.i(\d+))(?:\.r\d+)?\.egress")
    names = (path.name for path in output.iterdir()) if output.is_dir() else ()
    found = {match[1]: match for name in names if (match := life.fullmatch(name))}
    ranks = {name: (int(match[2]), int(match[3])) for name, match in found.items()}
    return sorted(ranks, key=lambda name: ranks[name])


def _segments(output: Path, file: str) -> list[tuple[int, Path]]:
    """The files in which the rows of a life lie, each with its first row; that of the first is unknown."""
    later = re.compile(rf"{re.escape(file)}\.r(\d+)\.egress", re.ASCII)
    names = [path.name for path in output.iterdir()] if output.is_dir() else []
    found = sorted((int(m[1]), output / m[0]) for name in names if (m := later.fullmatch(name)))
    begin = output / f"{file}.egress"
    return [(0, begin), *found] if begin.name in names or not found else found


def _rows(output: Path, links: Sequence[ChainLink], origin_ms: int) -> SinkRows:
    seen: dict[TaskId, int] = {}
    parts, stamps = [], []
    for link in links:
        index = int(link.task.rpartition("/")[2])
        for at_ms, rows in _stretch(output, link):
            # Rows are counted from the first one of the run on, also if that was deleted.
            number = seen.setdefault(link.task, link.start)
            seen[link.task] = number + len(rows)
            first = (index << POSITION_BITS) + number
            position = np.arange(first, first + len(rows), dtype=np.int64)
            written = np.full(len(rows), at_ms - origin_ms, np.int64)
            parts.append(rows)
            stamps.append(Batch(dict(zip(STAMPS, (position, written), strict=True))))
    if not parts:
        return SinkRows(Batch({}, 0), Batch({}, 0))
    return SinkRows(concat(parts), concat(stamps))


def _stretch(output: Path, link: ChainLink) -> Iterator[tuple[int, Batch]]:
    """The rows of a link with the times at which they were written (rule R5); a stop of -1 means all."""
    segments = _segments(output, link.file)
    if link.stop >= 0 and segments[0][0] > link.start:
        raise ObjectDamaged(f"{output} has no file with row {link.start} of {link.file}")
    ends = [*(begin for begin, _ in segments[1:]), None]
    for (begin, path), end in zip(segments, ends, strict=True):
        if end is not None and end <= link.start:
            continue
        if 0 <= link.stop <= begin:
            return
        for at_ms, rows in _part(path, begin, link):
            link = replace(link, start=link.start + len(rows)) if link.stop >= 0 else link
            yield at_ms, rows
        if link.stop >= 0 and link.start < (link.stop if end is None else min(end, link.stop)):
            raise ObjectDamaged(f"{path} has no whole rows behind row {link.start} of {link.stop}")


def _part(path: Path, begin: int, link: ChainLink) -> Iterator[tuple[int, Batch]]:
    """The rows of a link that lie in one file, which begins with row `begin` if that is not 0."""
    if link.stop < 0 and scan(path, 0).damaged:
        raise ObjectDamaged(f"{path} is damaged before the place through which it was synced")
    at = begin or None
    for payload in walk(path):
        first, count, at_ms = _HEAD.unpack_from(payload)
        if at is not None and first != at:
            raise BrokenChain(f"{path.name}: row {first} stands where row {at} should")
        at = first + count
        start = max(first, link.start)
        stop = at if link.stop < 0 else min(at, link.stop)
        if start < stop:
            rows = decode(payload[_HEAD.size :])
            if len(rows) != count:
                raise ObjectDamaged(f"{path}: {count} rows were announced, {len(rows)} are there")
            if link.stop >= 0 and start != link.start:
                raise BrokenChain(f"{path.name} begins at row {start}, behind row {link.start}")
            link = replace(link, start=stop)
            yield at_ms, rows.slice(start - first, stop - first)
