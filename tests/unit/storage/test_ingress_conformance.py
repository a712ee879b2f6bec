"""The ingresses, held to `check_ingress`; and `check_ingress`, held to catch what is wrong."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ingress_conformance import check_ingress

from snapline.batch import Batch, Words, concat
from snapline.core.messages import END_OF_TIME
from snapline.errors import ObjectDamaged, ObjectMissing, UsageError
from snapline.storage.blocks import BlockIngress, StoredBlock
from snapline.storage.files.ingress import FileIngress
from snapline.storage.list_ingress import ListIngress, Timetable
from snapline.storage.parquet.ingress import ParquetIngress, write_part
from snapline.workload.common.base import Params
from snapline.workload.common.generated import Generated, draw
from stored_inputs import write_ingress


def batch(times):
    times = np.asarray(times, np.int64)
    names = Words(np.arange(len(times), dtype=np.int32) % 2, ("a", "b"))
    return Batch.of(time=times, name=names, text=[str(t) for t in times], ids=[[t] for t in times])


PARTITIONS = [
    [batch([5, 3, 8]), batch([8, 20])],
    [batch([1])],
    [batch(range(0, 100, 3)), batch([90, 95, 110])],
]


@pytest.fixture(params=["memory", "files", "parquet"])
def ingress(request, tmp_path):
    if request.param == "memory":
        return ListIngress(PARTITIONS)
    if request.param == "parquet":
        for number, batches in enumerate(PARTITIONS):
            write_part(tmp_path, number, 0, batches[0].schema, batches)
        return ParquetIngress(tmp_path)
    write_ingress(tmp_path, PARTITIONS)
    return FileIngress(tmp_path)


def test_it_is_pure_and_in_time(ingress):
    check_ingress(ingress)


def test_it_holds_what_was_given(ingress):
    assert (ingress.partitions, ingress.end(0), ingress.end(1)) == (3, 5, 1)
    assert ingress.read(0, 1, 4)["time"].tolist() == [3, 8, 8]
    assert ingress.read(0, 4, 99).rows() == [(20, "b", "20", [20])]


def test_a_late_record_is_due_with_the_one_before_it(ingress):
    assert [ingress.due_ms(0, offset) for offset in range(5)] == [5, 5, 8, 8, 20]
    assert [ingress.due_through(0, now) for now in (4, 5, 7, 8, 19, 20)] == [0, 2, 2, 4, 4, 5]


def test_the_watermark_is_the_lowest_time_to_come(ingress):
    marks = [ingress.watermark(0, offset) for offset in range(6)]
    assert marks == [3, 3, 8, 8, 20, END_OF_TIME]


@pytest.mark.parametrize("partitions", [[], [[]], [[batch([1])], []]])
def test_an_input_without_records_to_know_its_columns_by_is_refused(partitions):
    with pytest.raises(UsageError, match="at least one batch"):
        ListIngress(partitions)


def test_an_input_that_is_not_complete_is_not_there(tmp_path):
    write_ingress(tmp_path, PARTITIONS)
    (tmp_path / "input.obj").unlink()
    with pytest.raises(ObjectMissing):
        FileIngress(tmp_path)


def test_a_damaged_input_is_not_read(tmp_path):
    write_ingress(tmp_path, PARTITIONS)
    path = tmp_path / "partition-0-000000.rows"
    path.write_bytes(path.read_bytes()[:50] + b"!" + path.read_bytes()[51:])
    with pytest.raises(ObjectDamaged, match="partition-0"):
        FileIngress(tmp_path).read(0, 0, 1)


def test_a_partition_without_records_is_at_its_end(tmp_path):
    write_ingress(tmp_path, [[batch([7]).slice(0, 0)], [batch([7])]])
    ingress = FileIngress(tmp_path)
    assert (ingress.end(0), ingress.due_through(0, 99), ingress.watermark(0, 0)) == (
        0,
        0,
        END_OF_TIME,
    )
    check_ingress(ingress)


def test_stored_input_travels_closed_and_without_its_records(tmp_path):
    write_ingress(tmp_path, [[batch(range(10_000))]])
    ingress = FileIngress(tmp_path)
    before = ingress.read(0, 5, 8)
    shipped = pickle.dumps(ingress)
    assert len(shipped) < 5_000
    assert pickle.loads(shipped).read(0, 5, 8) == before


def test_opening_stored_input_reads_no_records(tmp_path, monkeypatch):
    write_ingress(tmp_path, PARTITIONS)
    loaded = []
    load = FileIngress.load
    monkeypatch.setattr(
        FileIngress,
        "load",
        lambda self, p, block: loaded.append((p, block)) or load(self, p, block),
    )
    ingress = FileIngress(tmp_path)
    assert (ingress.end(2), ingress.schema["name"]) == (37, "words")
    assert loaded == []
    assert ingress.due_through(2, 10) == 4
    assert loaded == [(2, 0)]


class Sparse(BlockIngress):
    """Blocks in memory, of any times."""

    def __init__(self, partitions):
        super().__init__({"time": "int64"}, [[StoredBlock.of(b) for b in bs] for bs in partitions])
        self.blocks = partitions

    def load(self, partition, block):
        return self.blocks[partition][block]


@given(
    st.lists(
        st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=4), max_size=7),
        min_size=1,
        max_size=2,
    )
)
def test_blocks_are_due_and_watermarked_as_if_they_were_one(partitions):
    parts = [[Batch.of(time=np.array(times, np.int64)) for times in bs] for bs in partitions]
    blocks, whole = Sparse(parts), [concat(bs) if bs else None for bs in parts]
    for partition, everything in enumerate(whole):
        if everything is None:
            continue
        one = Timetable(everything["time"])
        offsets = range(len(everything))
        assert [blocks.due_ms(partition, n) for n in offsets] == [one.due_ms(n) for n in offsets]
        marks = range(len(everything) + 1)
        assert [blocks.watermark(partition, n) for n in marks] == [one.watermark(n) for n in marks]
        assert [blocks.due_through(partition, now) for now in range(-1, 32)] == [
            one.due_through(now) for now in range(-1, 32)
        ]
    check_ingress(blocks)


class Impure(ListIngress):
    def read(self, partition, offset, stop):
        found = super().read(partition, offset, stop)
        return found.with_columns(time=found["time"] + offset)


class Backwards(ListIngress):
    def due_ms(self, partition, offset):
        return 100 - offset


class Hasty(ListIngress):
    def due_through(self, partition, now_ms):
        return super().due_through(partition, now_ms + 1)


class Optimist(ListIngress):
    def watermark(self, partition, offset):
        return super().watermark(partition, offset + 1)


@pytest.mark.parametrize("wrong", [Impure, Backwards, Hasty, Optimist])
def test_the_check_finds_what_is_wrong(wrong):
    with pytest.raises(AssertionError):
        check_ingress(wrong(PARTITIONS))


@pytest.mark.parametrize("disorder_ms", [0, 1, 70])
@pytest.mark.parametrize(("records", "duration_ms"), [(60, 2_400), (7, 1_000), (150, 40)])
def test_a_generated_input_is_pure_and_in_time(records, duration_ms, disorder_ms):
    params = Params(seed=3, partitions=2, records=records, duration_ms=duration_ms)
    check_ingress(Generated("bids", params, _price, records, disorder_ms))


def _price(params, partition, offsets):
    return {"price": draw(params, "price", partition, offsets, 100)}
