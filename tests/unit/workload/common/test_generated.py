"""Generated inputs: the same whoever asks, as often as they ask, in whatever pieces."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from snapline.batch import Batch, concat
from snapline.core.messages import END_OF_TIME
from snapline.workload.common.base import Params
from snapline.workload.common.generated import draw, label, share_of
from snapline.workload.counting.model import records
from snapline.workload.lineage.model import gets, posts
from snapline.workload.nexmark import model as nexmark
from snapline.workload.nhop.model import edges
from snapline.workload.reachability import model as reachability

pytestmark = pytest.mark.usefixtures("both_forms")

PARAMS = Params(seed=7)
PATIENT = replace(PARAMS, settings=(("bound", 300),))  # nothing comes behind its watermark
DISORDERED = nexmark.auctions(PARAMS, disorder_ms=100)
SOURCES = [
    records(PARAMS),
    nexmark.persons(PARAMS),
    nexmark.auctions(PARAMS),
    nexmark.bids(PARAMS),
    reachability.events(PARAMS),
    edges(PARAMS),
    DISORDERED,
    gets(PATIENT),
    posts(PATIENT),
]
every_source = pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)


@every_source
def test_a_range_is_the_same_in_whatever_pieces_it_is_read(source):
    whole = source.read(1, 0, source.end(1))
    pieces = [source.read(1, a, b) for a, b in ((0, 1), (1, 7), (7, source.end(1) + 5))]
    assert concat(pieces) == whole
    assert concat(pieces[::-1]) != whole


@every_source
def test_an_empty_range_has_the_schema_of_the_source(source):
    assert source.read(0, 3, 3) == Batch.empty(source.schema)
    assert source.read(0, 0, 5).schema == source.schema


@every_source
def test_no_two_records_have_the_same_id(source):
    ids = source.everything()["id"]
    assert len(np.unique(ids)) == PARAMS.partitions * source.records


@every_source
def test_partitions_and_seeds_differ(source):
    other = type(source)(source.name, Params(seed=8), source.fields, source.records)
    fields = [name for name in source.schema if name not in ("id", "time", "kind")]
    mine = source.read(0, 0, 20).select(*fields)
    assert mine != source.read(1, 0, 20).select(*fields)
    assert mine != other.read(0, 0, 20).select(*fields)


@pytest.mark.parametrize("duration_ms", [2_400, 7, 1_000_003])
def test_as_many_records_are_due_as_have_a_due_time_in_the_past(duration_ms):
    source = records(Params(duration_ms=duration_ms))
    due = [source.due_ms(0, offset) for offset in range(source.records)]
    assert due == sorted(due)
    assert due[0] == 0
    assert due[-1] < duration_ms
    for now in [-5, -1, *range(60), *due, duration_ms, 2 * duration_ms]:
        assert source.due_through(0, now) == sum(time <= now for time in due), now


@every_source
def test_no_record_is_older_than_the_watermark_before_it(source):
    times = source.read(0, 0, source.end(0))["time"]
    for offset in range(source.records):
        assert times[offset:].min() >= source.watermark(0, offset)
    assert source.watermark(0, source.end(0)) == END_OF_TIME


def test_disorder_makes_times_fall_and_due_times_not():
    times = DISORDERED.read(0, 0, 60)["time"]
    assert (np.diff(times) < 0).any()
    assert (np.diff(records(PARAMS).read(0, 0, 60)["time"]) >= 0).all()


def test_draws_are_even_and_fields_are_independent():
    offsets = np.arange(40_000)
    one, other = (draw(PARAMS, field, 0, offsets, 8) for field in ("a", "b"))
    table = np.bincount(one * 8 + other, minlength=64)
    assert abs(table - 625).max() < 125


def test_draws_never_change_between_versions():
    # Stored runs are judged by what the generator says today.
    assert draw(Params(seed=1), "field", 2, np.arange(5), 1000).tolist() == PINNED


PINNED = [154, 206, 557, 690, 93]


def test_a_label_names_partition_and_offset():
    assert label("bid", int(nexmark.bids(PARAMS).read(2, 17, 18)["id"][0])) == "bid 2:17"


def test_events_come_in_the_shares_of_the_paper():
    kinds = reachability.events(PARAMS).everything()["kind"]
    assert (np.bincount(kinds) / len(kinds)).tolist() == [0.6, 0.15, 0.2, 0.05]


def test_a_deletion_names_an_earlier_insert_of_its_kind():
    events = reachability.events(PARAMS).everything()
    kind_of = dict(zip(events["id"].tolist(), events["kind"].tolist(), strict=True))
    low = (1 << 40) - 1
    deletions = 0
    for event, kind, target in zip(
        *(events[c].tolist() for c in ("id", "kind", "target")), strict=True
    ):
        if kind in (reachability.LINK, reachability.SOURCE):
            assert target == -1
            continue
        deletions += 1
        assert target & low < event & low
        assert kind_of[target] == kind - 2
    assert deletions == 45


def test_sellers_are_persons_who_registered_lately_or_are_about_to():
    people = nexmark.persons(PARAMS).everything()
    registered = dict(zip(people["person"].tolist(), people["time"].tolist(), strict=True))
    lots = nexmark.auctions(PARAMS).everything()
    ages = [
        time - registered[seller]
        for time, seller in zip(lots["time"].tolist(), lots["seller"].tolist(), strict=True)
    ]
    assert min(ages) < 0 < max(ages) <= 6 * 120


@every_source
def test_at_once_everything_is_due_and_all_else_is_as_it_was(source):
    at_once = replace(source, params=replace(source.params, at_once=True))
    assert at_once.everything() == source.everything()
    assert at_once.due_through(0, 0) == at_once.end(0)
    offsets = range(at_once.end(0) + 1)
    assert {at_once.due_ms(0, offset) for offset in offsets} == {0}
    marks = [at_once.watermark(0, offset) for offset in offsets]
    assert marks == [source.watermark(0, offset) for offset in offsets]


def test_small_reads_of_several_partitions_and_blocks_do_not_get_into_each_others_way():
    source = nexmark.bids(replace(PARAMS, records=600))
    wholes = [source.make(partition, 0, 600) for partition in range(3)]
    for offset in (0, 255, 256, 3, 511, 590, 599):
        for partition in (0, 2, 1, 1):
            expected = wholes[partition].slice(offset, offset + 5)
            assert source.read(partition, offset, offset + 5) == expected


def test_a_source_is_the_same_and_as_small_to_send_after_it_was_read():
    fresh, read = nexmark.bids(PARAMS), nexmark.bids(PARAMS)
    read.read(0, 0, 1)
    assert (read, hash(read), repr(read)) == (fresh, hash(fresh), repr(fresh))
    assert pickle.dumps(read) == pickle.dumps(fresh)
    assert pickle.loads(pickle.dumps(read)).read(1, 5, 7) == fresh.read(1, 5, 7)
    assert replace(read, params=Params(seed=8)).read(0, 0, 1) != read.read(0, 0, 1)


def test_draws_and_shares_take_offsets_as_they_lie():
    offsets = np.arange(0, 60, 3)
    every = np.arange(60)
    assert (draw(PARAMS, "a", 0, every[::3], 7) == draw(PARAMS, "a", 0, offsets, 7)).all()
    assert (share_of(every[::3], 7, 60) == offsets * 7 // 60).all()
    limits = np.full(20, 7)
    assert (draw(PARAMS, "a", 0, every[::3], limits) == draw(PARAMS, "a", 0, offsets, 7)).all()
    assert not draw(PARAMS, "a", 0, offsets, 1).any()


def test_the_time_to_make_records_is_counted_and_a_copy_has_spent_none():
    made = nexmark.bids(replace(PARAMS, records=600))
    assert made.generated_ns == 0
    made.read(0, 0, 100)
    first = made.generated_ns
    assert first > 0
    assert pickle.loads(pickle.dumps(made)).generated_ns == 0
    made.read(0, 300, 310)  # a slice of a block, which is made once
    block = made.generated_ns
    assert block > first
    made.read(0, 310, 320)
    assert made.generated_ns == block
