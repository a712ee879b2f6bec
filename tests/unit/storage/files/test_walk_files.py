"""Files that are read a frame at a time say the same as files that are read whole."""

import numpy as np
import pytest

from snapline.batch import Batch
from snapline.errors import ObjectDamaged, ObjectMissing
from snapline.storage.files.rows import RowTail, RowWriter, walk_written


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
    found = [n for written in walk_written(path, *cut) for n in written.rows["n"].tolist()]
    assert found == list(range(max(10, cut[0]), cut[1]))


def test_all_that_is_whole_is_walked(path):
    assert [len(written.rows) for written in walk_written(path)] == [10, 10, 10]


@pytest.mark.parametrize("place", [60, -100])
def test_rows_that_were_written_and_are_gone_are_damage(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises(ObjectDamaged, match=r"x\.egress is damaged at byte \d+, behind row"):
        list(walk_written(path, 10, 40))


def test_what_stands_before_the_wanted_rows_is_skipped_unread(path):
    data = bytearray(path.read_bytes())
    data[60] ^= 1  # in the first frame
    path.write_bytes(data)
    assert [written.first for written in walk_written(path, 25, 40)] == [25, 30]


@pytest.mark.parametrize("length", [3, 70, 1 << 30])
def test_a_damaged_head_leads_nobody_astray(path, length):
    data = bytearray(path.read_bytes())
    data[:4] = length.to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(ObjectDamaged, match="is damaged at byte"):
        list(walk_written(path, 25, 40))


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
    with pytest.raises(ObjectMissing, match="ends before row 40, at row 33"):
        read(33, 40)


def test_a_tail_does_not_read_again_what_stands_before_it(path):
    tail = RowTail(path)
    assert len(list(tail.read(10, 30))) == 2
    data = path.read_bytes()
    path.write_bytes(bytes(100) + data[100:])  # the first frame
    assert [written.first for written in tail.read()] == [30]
