"""Files that are read a frame at a time say the same as files that are read whole."""

import numpy as np
import pytest

from snapline.batch import Batch, concat
from snapline.errors import ObjectDamaged
from snapline.ids import TaskId
from snapline.storage.api import Extent, Life
from snapline.storage.files.outlet import FileOutlet
from snapline.storage.files.rows import RowTail, RowWriter, walk_rows

SINK = TaskId("my-sink/0")


def rows(start, stop):
    return Batch.of(n=np.arange(start, stop))


@pytest.fixture
def path(tmp_path):
    """Rows 10 to 40 in three frames, with marks between them, and half a frame behind."""
    path = tmp_path / "x.egress"
    writer = RowWriter(path, 10)
    for start in (10, 20, 30):
        writer.append(rows(start, start + 10))
        writer.sync()
    writer.close()
    with path.open("ab") as file:
        file.write(b"\x50\x00\x00\x00half")
    return path


@pytest.mark.parametrize("cut", [(0, 40), (10, 40), (15, 16), (19, 31), (20, 30), (10, 10)])
def test_any_range_of_rows_is_walked(path, cut):
    found = [n for batch in walk_rows(path, *cut) for n in batch["n"].tolist()]
    assert found == list(range(max(10, cut[0]), cut[1]))


def test_all_that_is_whole_is_walked(path):
    assert [len(batch) for batch in walk_rows(path)] == [10, 10, 10]


@pytest.mark.parametrize("place", [60, -100])
def test_rows_that_were_written_and_are_gone_are_damage(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises(ObjectDamaged, match=r"x\.egress has no whole rows behind row"):
        list(walk_rows(path, 10, 40))


def test_the_extents_of_a_task_are_one_per_file(tmp_path):
    outlet = FileOutlet(tmp_path)
    first = outlet.open(Life(SINK, 1, 2), 0)
    first.append(rows(0, 10))
    first.sync()
    assert outlet.publish(1, {SINK: Extent(first.file, 0, 4)})
    assert outlet.publish(2, {SINK: Extent(first.file, 4, 7)})
    second = outlet.open(Life(SINK, 10, 1), 7)
    second.append(rows(7, 12))
    second.sync()
    assert outlet.publish(3, {SINK: Extent(second.file, 7, 7)})
    assert outlet.publish(4, {SINK: Extent(second.file, 7, 11)})
    again = FileOutlet(tmp_path)
    extents = again.extents(SINK)
    assert extents == [Extent(first.file, 0, 7), Extent(second.file, 7, 11)]
    walked = [b for e in extents for b in again.walk(e.file, e.start, e.stop)]
    assert concat(walked) == concat(again.committed(SINK)) == rows(0, 11)
    assert again.files() == {SINK: [first.file, second.file]}
    assert (again.extents(TaskId("other/0")), again.uncommitted(TaskId("other/0"))) == ([], [])


def test_a_tail_reads_every_row_once_while_the_file_grows(tmp_path):
    path = tmp_path / "x.egress"
    writer, tail = RowWriter(path, 10), RowTail(path)

    def read(*cut):
        return [(w.first, *w.rows["n"].tolist()) for w in tail.read(*cut)]

    assert read() == []
    for start in (10, 20):
        writer.append(rows(start, start + 4))
        writer.sync()
        writer.position += 6
    assert read(10, 12) == [(10, 10, 11)]
    assert read(12, 14) == [(12, 12, 13)]
    assert read(21, 22) == [(21, 21)]
    assert read() == [(22, 22, 23)]
    writer.append(rows(30, 33))
    assert read() == []
    writer.flush()
    assert read() == [(30, 30, 31, 32)]
    assert read() == []
    with pytest.raises(ObjectDamaged, match=r"no whole rows behind row 33, and 40 were published"):
        read(33, 40)


def test_a_tail_does_not_read_again_what_stands_before_it(path):
    tail = RowTail(path)
    assert len(list(tail.read(10, 30))) == 2
    data = path.read_bytes()
    path.write_bytes(bytes(100) + data[100:])  # the first frame
    assert [written.first for written in tail.read()] == [30]
