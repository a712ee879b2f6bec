"""What every storage promises as a whole, and every reader of output: in memory, simulated, in files."""

import random
from types import SimpleNamespace

import pytest

from snapline.batch import Batch
from snapline.errors import ObjectMissing, StorageError
from snapline.ids import TaskId
from snapline.sim.world.costs import Costs
from snapline.sim.world.storage import SimStorage
from snapline.storage.api import Extent, Life, OutputPiece, rows_of
from snapline.storage.files.ingress import describe_ingress, write_segment
from snapline.storage.files.storage import FileStorage
from snapline.storage.list_ingress import ListIngress
from snapline.storage.memory import MemoryStorage
from storage_harness import CHANNEL, message, seqs

SINK, OTHER = TaskId("out/0"), TaskId("out/1")
INPUT = Batch.of(time=[1, 2, 3])


@pytest.fixture(params=("memory", "simulated", "files"))
def storage(request, tmp_path):
    if request.param == "memory":
        return MemoryStorage(inputs={"events": ListIngress([[INPUT]])})
    if request.param == "simulated":
        made = SimStorage(SimpleNamespace(now_us=0), Costs(), random.Random(1))
        made._inputs["events"] = ListIngress([[INPUT]])
        return made
    for name in ("store", "events"):
        (tmp_path / name).mkdir()
    segment = write_segment(tmp_path / "events", 0, 0, [INPUT])
    describe_ingress(tmp_path / "events", INPUT.schema, [[segment]])
    return FileStorage(tmp_path)


def rows(first, last):
    return Batch.of(n=list(range(first, last)))


def write(storage, task, epoch, position, *stops):
    """Rows position..stops[0], ... of a sink task, each in a batch of its own, synced."""
    egress = storage.outlet.open(Life(task, epoch, epoch), position)
    for stop in stops:
        egress.append(rows(egress.position, stop))
    egress.sync()
    return egress.file


def numbers(written):
    return [(each.first, *each.rows["n"].tolist()) for each in written]


def test_one_storage_makes_every_port(storage):
    digest = storage.store.put("snapshot/a/1", b"state")
    assert storage.store.get("snapshot/a/1", digest) == b"state"
    log = storage.logs.open(Life(TaskId("bids/0"), 1, 1))
    log.append(message(1))
    log.sync()
    again = storage.logs.open(Life(TaskId("bids/0"), 2, 2))
    assert seqs(again.read(CHANNEL, after=0, through=1)) == [(1, 1)]
    assert storage.ingress("events").read(0, 0, 3) == INPUT
    with pytest.raises(StorageError):
        storage.ingress("nothing")
    storage.store.damage("snapshot/a/1")
    with pytest.raises(StorageError):
        storage.store.get("snapshot/a/1", digest)


def test_the_last_epoch_is_that_of_the_newest_file(storage):
    assert storage.last_epoch() == 0
    log = storage.logs.open(Life(TaskId("bids/0"), 3, 1))
    log.append(message(1))
    log.sync()
    assert storage.last_epoch() == 3
    write(storage, SINK, 12, 0, 2)
    assert storage.last_epoch() == 12


def test_what_is_public_is_held_against_what_was_decided(storage):
    assert storage.outlet.last_published() == 0
    decided = {1: {SINK: Extent(write(storage, SINK, 1, 0, 5), 0, 3)}}
    assert storage.outlet.publish(1, decided[1])
    assert storage.outlet.last_published() == 1
    storage.outlet.check(decided, 1, {SINK: 3})
    with pytest.raises(ObjectMissing, match="manifest 2 is gone"):
        storage.outlet.check({}, 2, {SINK: 3})


def test_a_reader_knows_the_sink_tasks_and_where_their_rows_lie(storage):
    second = write(storage, OTHER, 1, 0, 3)
    first = write(storage, SINK, 1, 0, 4, 9)
    outlet = storage.outlet
    assert outlet.publish(1, {SINK: Extent(first, 0, 2), OTHER: Extent(second, 0, 0)})
    assert outlet.publish(2, {SINK: Extent(first, 2, 6)})
    later = write(storage, SINK, 10, 6, 8)
    assert outlet.publish(3, {SINK: Extent(later, 6, 7)})
    output = storage.output
    assert output.tasks() == [SINK, OTHER]
    committed = [OutputPiece(first, 0, 6), OutputPiece(later, 6, 7)]
    assert output.pieces(SINK, "committed") == committed
    assert output.pieces(OTHER, "committed") == []
    whole = [OutputPiece(first, 0, None), OutputPiece(later, 0, None)]
    assert output.pieces(SINK, "uncommitted") == whole
    assert numbers(output.read(committed[0])) == [(0, 0, 1, 2, 3), (4, 4, 5)]
    assert numbers(output.read(committed[1])) == [(6, 6)]
    assert [n for batch in rows_of(output, [SINK, OTHER], "uncommitted") for n in batch["n"]] == [
        *range(9),
        *range(6, 8),
        *range(3),
    ]


def test_what_lies_between_two_manifests_is_the_same_for_ever(storage):
    first = write(storage, SINK, 1, 0, 4, 9)
    outlet, output = storage.outlet, storage.output
    assert output.published() == 0
    assert outlet.publish(1, {SINK: Extent(first, 0, 2)})
    assert outlet.publish(2, {SINK: Extent(first, 2, 6)})
    assert output.published() == 2
    early = output.pieces_between(SINK, 0, 1), output.pieces_between(SINK, 1, 2)
    assert early == ([OutputPiece(first, 0, 2)], [OutputPiece(first, 2, 6)])
    later = write(storage, SINK, 10, 6, 8)
    assert outlet.publish(3, {SINK: Extent(later, 6, 7)})
    assert (output.pieces_between(SINK, 0, 1), output.pieces_between(SINK, 1, 2)) == early
    assert output.pieces_between(SINK, 1, 3) == [OutputPiece(first, 2, 6), OutputPiece(later, 6, 7)]
    assert output.pieces_between(SINK, 3, 3) == output.pieces_between(OTHER, 0, 3) == []
    with pytest.raises(ObjectMissing, match="manifest 4 is not public: there are 3"):
        output.pieces_between(SINK, 2, 4)


def test_rows_that_are_not_there_are_missed(storage):
    file = write(storage, SINK, 1, 2, 4)
    with pytest.raises(ObjectMissing, match="ends before row 6, at row 4"):
        list(storage.output.read(OutputPiece(file, 2, 6)))
    with pytest.raises(ObjectMissing):
        list(storage.output.read(OutputPiece("out-0.e9.i9", 0, 1)))


def test_a_follower_sees_every_manifest_and_every_row_once(storage):
    egress = storage.outlet.open(Life(SINK, 1, 1), 0)
    follower = storage.output.follow()
    assert list(follower.published()) == []
    extents = []
    for number, stop in enumerate((2, 5, 6), 1):
        egress.append(rows(egress.position, stop + 1))
        egress.sync()
        start = extents[-1].stop if extents else 0
        extents.append(Extent(egress.file, start, stop))
        assert storage.outlet.publish(number, {SINK: extents[-1]})
        assert list(follower.published()) == [{SINK: extents[-1]}]
        read = follower.read(OutputPiece(egress.file, start, stop))
        assert [n for each in read for n in each.rows["n"].tolist()] == [*range(start, stop)]
    assert numbers(follower.read(OutputPiece(egress.file, 0, None))) == [(6, 6)]
    assert numbers(follower.read(OutputPiece(egress.file, 0, None))) == []
    assert list(storage.output.follow().published()) == [{SINK: extent} for extent in extents]
    with pytest.raises(ObjectMissing):
        list(follower.read(OutputPiece(egress.file, 0, 8)))
