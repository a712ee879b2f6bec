"""What a line needs: each file without which a run cannot go on from it, and how to tell if it is whole.

snapshots     of every task, and those that they build on; the decision has the digest of each
groups        of rows, which the snapshots name, with their digests
messages      that are in flight across the line, as far as the senders' logs have them
output        the floor (`storage/floor.py`), the manifests above it through the line, and the rows that
              these name or that wait to be published
input         the rows of DataFrames that were staged in the run directory, and of streams

How the tasks are connected is not looked up in the dataflow, which may be code of the user: the counters of
the checkpoints name every channel on which anything was ever sent. So nothing is executed here.
"""

import glob
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

from snapline.core.guarantee import Guarantee
from snapline.core.messages import CheckpointMeta, initial_meta
from snapline.core.topology import Channel, Topology
from snapline.engine.coordinator.levels import settle
from snapline.engine.slot.checkpoints import key_of, stored_groups
from snapline.errors import ObjectDamaged, ObjectMissing, StorageError
from snapline.ids import ChannelId, Epoch, Seq, TaskId, checkpoint_label
from snapline.recovery.replay import Origin, ReplayPart, replay_plan
from snapline.rundir.directory import RunDirectory
from snapline.rundir.lines.kept import KeptLine
from snapline.rundir.stored_input import staged_place
from snapline.storage.api import Extent, Life
from snapline.storage.files.ingress import check_blocks, description_of, segments_of
from snapline.storage.files.log import FileLog, check_segment
from snapline.storage.files.log_index import read_index, segment_of
from snapline.storage.files.manifests import FileManifests
from snapline.storage.files.rows import check_rows, stretches
from snapline.storage.files.store import FileStore
from snapline.storage.streams.chain import described_stream, is_stream, stream_description_of
from snapline.storage.streams.manifests import Manifests


@dataclass(frozen=True, slots=True)
class Need:
    """A file that a line needs."""

    path: Path
    what: str  # for people: what it has that the line needs
    check: Callable[[], None]  # reads it; raises StorageError if it is not whole


def needs_of(directory: RunDirectory, line: KeptLine, guarantee: Guarantee) -> list[Need]:
    """All files that a line needs. Files that are gone are among them, and so are damaged ones."""
    return [
        *_snapshots(directory, line.snapshots),
        *(need for chain in line.decision.chains.values() for need in _groups(directory, chain)),
        *_logs(directory, line, guarantee),
        *_output(directory, line),
        *_input(directory, over=bool(line.decision.over)),
    ]


# Snapshots.


def _snapshots(directory: RunDirectory, metas: Iterable[CheckpointMeta]) -> Iterator[Need]:
    store = directory.storage.untroubled
    for meta in metas:

        def check(meta: CheckpointMeta = meta) -> None:
            store.get(key_of(meta), meta.digest)

        what = f"checkpoint {checkpoint_label(meta.checkpoint)} of {meta.task}"
        yield Need(store.path(key_of(meta)), what, check)


def _groups(directory: RunDirectory, chain: Sequence[CheckpointMeta]) -> Iterator[Need]:
    """The groups of a checkpoint, if its snapshots can be read: if not, that is what is said."""
    store = directory.storage.untroubled
    try:
        groups = stored_groups(store, chain)
    except StorageError:
        return
    for group in groups:
        label = f"checkpoint {checkpoint_label(chain[-1].checkpoint)} of {chain[-1].task}"
        what = f"group {group.number} of {label}"
        yield Need(store.path(group.key), what, partial(_stored, store, group.key, group.digest))


# Messages.


def in_flight(line: KeptLine, guarantee: Guarantee) -> list[tuple[TaskId, ReplayPart]]:
    """The messages that are replayed when a run goes on from a line, each part with its sender."""
    chains = line.decision.chains
    metas = {task: chain[-1] if chain else initial_meta(task) for task, chain in chains.items()}
    topology = _topology(metas.values())
    plan = replay_plan(topology, settle(topology, metas, guarantee))
    return [(topology.by_id[part.channel].source, part) for part in plan]


def _topology(metas: Iterable[CheckpointMeta]) -> Topology:
    """The tasks of a line and the channels between them, as far as anything was sent."""
    known = list(metas)
    targets = {channel: meta.task for meta in known for channel in meta.received}
    tasks = tuple(meta.task for meta in known)
    channels = []
    for meta in known:
        for channel in meta.sent:
            target = targets.get(channel) or _named_target(channel, meta.task, tasks)
            channels.append(Channel(channel, meta.task, target))
    return Topology(tasks, tuple(channels))


def _named_target(channel: ChannelId, source: TaskId, tasks: Iterable[TaskId]) -> TaskId:
    """The target of a channel from which nothing was received so far: it stands in its name."""
    rest = channel.removeprefix(f"{source}>")
    return max((task for task in tasks if rest.startswith(task)), key=len)


def _logs(directory: RunDirectory, line: KeptLine, guarantee: Guarantee) -> Iterator[Need]:
    logs: dict[TaskId, _Log] = {}
    for task, part in in_flight(line, guarantee):
        if part.origin is Origin.LOG:  # all else is part of a snapshot
            try:
                log = logs.get(task) or _Log(directory, line, task)
            except StorageError as error:  # one of its segments is no file, for example
                what = f"messages of {task}"
                yield Need(directory.path / "logs", what, partial(_raise, error))
                continue
            logs[task] = log
            yield from log.segments(part)


class _Log:
    """The log of one task, as a line needs it.

    Where several lives of a task have logged a message, that of the last life counts. If its segment is
    gone or cut, an earlier one is found instead, which was undone by a rollback. So two other witnesses are
    heard: the indexes of segments, which say what was durable in them, and the ledger, which says in which
    epoch a message was sent.
    """

    def __init__(self, directory: RunDirectory, line: KeptLine, task: TaskId) -> None:
        self.path = directory.path / "logs"
        self.line = line
        self.task = task
        self.log: FileLog = directory.storage.logs.open(Life(task, sys.maxsize, 0))
        self.indexed: dict[tuple[ChannelId, Seq], tuple[Epoch, Path]] = {}
        for index in sorted(self.path.glob(f"{glob.escape(task.replace('/', '-'))}.e*.index")):
            entries, _ = read_index(segment_of(index), sys.maxsize)
            for channel, seq, epoch, _, _ in entries:
                known = self.indexed.get((channel, seq), (0, self.path))
                self.indexed[channel, seq] = max(known, (epoch, segment_of(index)))

    def segments(self, part: ReplayPart) -> Iterator[Need]:
        """The segments that have the messages of a part, or should have them."""
        seqs = range(part.after + 1, part.through + 1)
        for path, group in groupby(seqs, key=lambda seq: self._place(part.channel, seq)):
            found = list(group)
            what = f"messages {found[0]} to {found[-1]} of {part.channel}"
            yield Need(path, f"messages of {self.task}", partial(self._check_segment, path))
            yield Need(path, what, partial(self._check_messages, part.channel, found))

    def _place(self, channel: ChannelId, seq: Seq) -> Path:
        """The segment of a message; if it cannot be found, the file that is to blame, or the directory."""
        epoch, indexed = self.indexed.get((channel, seq), (0, self.path))
        try:
            found = self.log.segment_of(channel, seq)
        except ObjectDamaged:
            return self.log.damaged[-1]
        except ObjectMissing:
            return indexed
        return indexed if found[0] < epoch else found[1]

    def _check_segment(self, path: Path) -> None:
        if path != self.path:
            if not path.is_file():
                raise ObjectMissing(f"there is no {path}")
            check_segment(path)

    def _check_messages(self, channel: ChannelId, seqs: list[Seq]) -> None:
        for seq in seqs:
            [message] = self.log.read(channel, after=seq - 1, through=seq)
            if (message.channel, message.seq) != (channel, seq):
                raise ObjectDamaged(f"another message stands in the place of message {seq}")
            if message.epoch < (epoch := self.line.epoch_of(self.task, channel, seq)):
                raise ObjectMissing(
                    f"message {seq} was sent again in epoch {epoch}, and the log has only the one of "
                    f"epoch {message.epoch}, which was undone"
                )


# Output.


def _output(directory: RunDirectory, line: KeptLine) -> Iterator[Need]:
    output, decision = directory.path / "output", line.decision
    rows: dict[str, list[int]] = {}  # by life
    # A driver that died just after its last decision may not have published what it decided.
    last_words = line.newest and not decision.over
    pending = {m.number: m.extents for m in decision.manifests} if last_words else {}
    manifests = FileManifests(output / "manifests")
    try:
        floor = manifests.read_floor()
    except StorageError as error:
        yield Need(manifests.floor_file(), "what was deleted", partial(_raise, error))
        return
    if floor.place:
        yield Need(manifests.floor_file(), "what was deleted", lambda: None)
    for place in range(floor.place + 1, decision.published + 1):
        need, extents = _manifest(manifests, place)
        if extents is None and place in pending and not need.path.exists():
            _add(rows, pending[place].values())  # whoever goes on publishes it
            continue
        _add(rows, (extents or {}).values())
        yield need
    for held in decision.held:
        _add(rows, held.extents.values())
    for life, (first, last) in rows.items():
        for path, start, stop in stretches(output, life, first, last):
            yield Need(path, "published rows", partial(check_rows, path, start, stop or 0))


def _manifest(manifests: FileManifests, place: int) -> tuple[Need, dict[TaskId, Extent] | None]:
    path, what = manifests.file(place), f"manifest {place}"
    try:
        number, extents = manifests.read(place)
        if number != place:
            raise ObjectDamaged(f"in the place of manifest {place} lies number {number}")
    except StorageError as error:
        return Need(path, what, partial(_raise, error)), None
    return Need(path, what, lambda: None), extents


def _add(rows: dict[str, list[int]], extents: Iterable[Extent]) -> None:
    for extent in extents:
        known = rows.setdefault(extent.file, [extent.start, extent.stop])
        rows[extent.file] = [min(known[0], extent.start), max(known[1], extent.stop)]


# Input.


def _input(directory: RunDirectory, *, over: bool) -> Iterator[Need]:
    """What was staged when the run began: all of it, because each line is followed by the rest of it."""
    for source in directory.staged:
        place, what = staged_place(directory, source), f"input of {source}"
        if is_stream(place) or Manifests(place).last_number():
            yield from _stream(place, what, over=over)
            continue
        described = description_of(place)
        try:
            segments = segments_of(place)
        except StorageError as error:
            yield Need(described, what, partial(_raise, error))
            continue
        yield Need(described, what, lambda: None)
        for path, segment in segments:
            yield Need(path, what, partial(check_blocks, path, segment))


def _stream(place: Path, what: str, *, over: bool) -> Iterator[Need]:
    """The chain of a stream from its floor on, with all that it names; if the run is over it is sealed."""
    yield Need(stream_description_of(place), what, partial(_described, place))
    manifests = Manifests(place)
    floor, last, sealed = manifests.floor(), manifests.last_number(), False
    if floor > 1:
        name = str(floor)
        yield Need(manifests.floors.path(name), what, partial(_stored, manifests.floors, name))
    for number in range(floor, last + 1):
        yield Need(manifests.file(number), what, partial(_check_manifest, manifests, number))
        try:
            manifest = manifests.read(number)
        except StorageError:
            continue
        if manifest is not None:
            sealed = manifest.sealed
            for path, segment in manifest.files(place):
                yield Need(path, what, partial(check_blocks, path, segment))
    if over and not sealed:
        end = manifests.file(last + 1)
        gone = ObjectMissing(f"{end} is gone: the run is over, and the stream has no end")
        yield Need(end, what, partial(_raise, gone))


def _check_manifest(manifests: Manifests, number: int) -> None:
    if manifests.read(number) is None:
        raise ObjectMissing(f"there is no {manifests.file(number)}")


def _stored(store: FileStore, key: str, digest: str | None = None) -> None:
    store.get(key, digest)


def _described(place: Path) -> None:
    described_stream(place)


def _raise(error: StorageError) -> None:
    raise error
