"""A stream as slots read it: it grows, says when it has ended, and what time it is."""

import os
import pickle

import pytest
from ingress_conformance import check_ingress

from snapline.core.messages import BEFORE_TIME, END_OF_TIME, IDLE
from snapline.errors import ObjectDamaged, ObjectMissing
from snapline.storage.api import Prefetched
from snapline.storage.files.store import FileStore
from snapline.storage.streams import ingress as ingress_module
from snapline.storage.streams import manifests as manifests_module
from snapline.storage.streams import upkeep as upkeep_module
from snapline.storage.streams.chain import StreamChain, read_manifests
from snapline.storage.streams.ingress import LOOK, LOOK_MS, StreamIngress
from snapline.storage.streams.manifests import InputDeleted
from snapline.storage.streams.upkeep import StreamUpkeep
from written_streams import add, made_stream, own_file


@pytest.fixture(autouse=True)
def no_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda fd: None)


@pytest.fixture
def chain(tmp_path):
    return made_stream(tmp_path / "bids", idle_ms=200)


def look(ingress, now_ms, partition=0, offset=None):
    """What the threads beside a slot's loop do for a source that has read everything."""
    offset = ingress.due_at_least(partition, now_ms) if offset is None else offset
    wanted = ingress.needed(partition, offset, offset + 1, now_ms)
    for block in wanted:
        ingress.keep(partition, block, ingress.fetch(partition, block))
    return list(wanted)


def test_it_is_pure_and_in_time(chain):
    add(chain, [10, 20, 30], [15])
    add(chain, [], [30, 45])
    add(chain, [50], [])
    assert isinstance(StreamIngress(chain.place), Prefetched)
    check_ingress(StreamIngress(chain.place), records_max=3)
    chain.seal()
    check_ingress(StreamIngress(chain.place))


def test_it_grows_until_it_is_sealed_and_what_was_read_stays_as_it_was(chain):
    ingress = StreamIngress(chain.place)
    assert look(ingress, 0) == [LOOK]
    assert (ingress.end(0), ingress.due_through(0, 0)) == (None, 0)
    add(chain, [1, 2], [])
    assert ingress.due_through(0, 0) == 0, "nobody has looked"
    look(ingress, 1_000)
    first = ingress.read(0, 0, 9)
    add(chain, [3], [4])
    look(ingress, 2_000)
    assert ingress.read(0, 0, 3)["n"].tolist() == [1, 2, 3]
    assert (ingress.end(0), ingress.end(1)) == (None, None)
    chain.seal()
    look(ingress, 3_000)
    assert (ingress.end(0), ingress.end(1)) == (3, 1)
    assert ingress.watermark(0, 3) == END_OF_TIME
    assert ingress.read(0, 0, 2) == first
    assert look(ingress, 9_000) == [], "nothing follows a seal"


def test_it_is_looked_for_more_only_now_and_then_and_not_while_records_wait(chain):
    ingress = StreamIngress(chain.place)
    assert look(ingress, 1_000) == [LOOK]
    assert look(ingress, 1_000 + LOOK_MS - 1) == []
    assert ingress.due_ms(0, 0) == 1_000 + LOOK_MS
    assert look(ingress, 1_000 + LOOK_MS) == [LOOK]
    add(chain, [1], [])
    look(ingress, 5_000)
    assert ingress.due_ms(0, 0) == 0
    assert look(ingress, 6_000, offset=0) == [0], "only the block"
    assert look(ingress, 10) == [LOOK], "the clock was set back"


def test_it_travels_without_what_it_knows_and_finds_it_again(chain):
    add(chain, [1, 2], [3])
    ingress = StreamIngress(chain.place)
    assert ingress.due_through(0, 0) == 2
    again = pickle.loads(pickle.dumps(ingress))
    assert again.due_at_least(0, 0) == 0
    assert look(again, 0, offset=2) == [LOOK]
    assert again.read(0, 0, 2)["n"].tolist() == [1, 2]
    assert again.identity == ingress.identity


def test_its_identity_is_what_it_is_and_not_what_has_come(chain, tmp_path):
    before = StreamIngress(chain.place).identity
    add(chain, [1], [2])
    assert StreamIngress(chain.place).identity == before
    assert StreamIngress(made_stream(tmp_path / "other", idle_ms=200).place).identity != before


def marks(ingress, partition):
    return [ingress.watermark(partition, n) for n in range(ingress.due_through(partition, 0) + 1)]


def test_the_watermark_follows_the_highest_time_of_the_whole_stream(tmp_path):
    """Of a micro-batch that has no rows for a partition the partition learns the time, too."""
    chain = made_stream(tmp_path / "bids", disorder_ms=10)
    add(chain, [100, 130], [150])
    add(chain, [], [145, 200])
    ingress = StreamIngress(chain.place)
    assert marks(ingress, 0) == [100, 130, 190]
    assert marks(ingress, 1) == [140, 145, 190, 190]
    add(chain, [170, 210], [])
    ingress = StreamIngress(chain.place)
    assert marks(ingress, 0) == [100, 130, 190, 200, 200], "170 is late, and turns nothing back"


def test_before_the_first_record_and_near_the_beginning_of_time_nothing_is_said(tmp_path):
    chain = made_stream(tmp_path / "bids", disorder_ms=101)
    ingress = StreamIngress(chain.place)
    assert ingress.watermark(0, 0) == BEFORE_TIME
    add(chain, [100], [])
    assert marks(StreamIngress(chain.place), 0) == [BEFORE_TIME, BEFORE_TIME]


def test_a_stream_without_news_is_idle_until_there_are_some(chain):
    add(chain, [100], [])
    ingress = StreamIngress(chain.place)
    look(ingress, 1_000)
    look(ingress, 1_199, offset=1)
    assert ingress.watermark(0, 1) == 100
    look(ingress, 1_250, offset=1)
    assert (ingress.watermark(0, 1), ingress.watermark(1, 0)) == (IDLE, IDLE)
    assert ingress.watermark(0, 0) == 100, "there is still something to read"
    add(chain, [], [120])
    look(ingress, 1_300, offset=1)
    assert (ingress.watermark(0, 1), ingress.watermark(1, 0)) == (120, 120)


def test_a_slot_that_slept_looks_before_it_calls_the_stream_idle(chain):
    """It has not looked for longer than the idle time, and rows have come meanwhile."""
    ingress = StreamIngress(chain.place)
    look(ingress, 1_000)
    add(chain, [100], [])
    look(ingress, 9_000)
    assert ingress.watermark(1, 0) == 100
    look(ingress, 9_100, partition=1)
    assert ingress.watermark(1, 0) == 100


def test_a_slot_that_has_just_restarted_does_not_call_it_idle(chain):
    add(chain, [100], [])
    ingress = StreamIngress(chain.place)
    ingress.due_through(0, 50_000)
    look(ingress, 50_000, offset=1)
    assert ingress.watermark(0, 1) == 100


def test_a_chain_that_is_damaged_fails_where_input_is_read(chain):
    ingress = StreamIngress(chain.place)
    look(ingress, 0)
    add(chain, [1], [])
    own_file(chain.place, 1).write_bytes(b"no manifest")
    look(ingress, 1_000)
    assert ingress.due_through(0, 1_000) == 1
    with pytest.raises(ObjectDamaged, match=r"1\.obj"):
        ingress.read(0, 0, 1)


def test_records_that_were_read_and_are_gone_are_missed(chain):
    add(chain, [1, 2], [])
    own_file(chain.place, 1).unlink()
    ingress = StreamIngress(chain.place)
    look(ingress, 0, offset=2)
    with pytest.raises(ObjectMissing, match="2 records of partition 0 were read"):
        ingress.watermark(0, 2)


# Streams of which a part is bundled, or deleted.


@pytest.fixture
def long(tmp_path, monkeypatch):
    """A stream of many micro-batches, with rows for one partition or both, and few to a bundle."""
    for module in (manifests_module, upkeep_module):
        monkeypatch.setattr(module, "BUNDLE", 4)
    monkeypatch.setattr(ingress_module, "FORGET", 3)
    chain = made_stream(tmp_path / "long", disorder_ms=15)
    for number in range(50):
        time = 10 * number
        add(chain, [time, time + 3] if number % 3 else [], [time + 7] if number % 4 else [])
    return chain


def tend(chain, first):
    """Bundle the manifests of a stream, and delete all before one of them. Returns where it begins."""
    begins = read_manifests(chain.place)[first - 1].before.offsets
    upkeep = StreamUpkeep(chain.place)
    upkeep.bundle()
    upkeep.raise_floor(begins, 1 << 60)
    upkeep.tidy()
    return begins


def all_read(ingress, partition, offset):
    """Rows and watermarks from an offset on, read in small pieces as a slot reads them."""
    rows, marks = [], []
    while (piece := ingress.read(partition, offset, offset + 3)).length:
        rows += piece["n"].tolist()
        marks += [ingress.watermark(partition, offset + n) for n in range(piece.length)]
        offset += piece.length
    return rows, [*marks, ingress.watermark(partition, offset)]


def test_bundles_and_a_floor_change_no_record_and_no_watermark_behind_it(long):
    whole = [all_read(StreamIngress(long.place), p, 0) for p in range(2)]
    begins = tend(long, 23)
    for partition, (rows, marks) in enumerate(whole):
        first = begins[partition]
        for offset in range(first, len(marks)):
            ingress = StreamIngress(long.place)
            found = all_read(ingress, partition, offset)
            assert found == (rows[offset:], marks[offset:])
        fetched = StreamIngress(long.place)
        assert look(fetched, 0, partition, first) == [LOOK]
        assert all_read(fetched, partition, first) == (rows[first:], marks[first:])


def test_a_record_below_the_floor_is_refused_by_its_number(long):
    begins = tend(long, 23)
    ingress = StreamIngress(long.place)
    assert ingress.due_through(0, 0) == 66, "they count, although some are gone"
    message = (
        rf"record {begins[0] - 1} of partition 0 .* was deleted: its input begins with record "
    )
    with pytest.raises(InputDeleted, match=message + rf"{begins[0]}, in micro-batch 22"):
        ingress.read(0, begins[0] - 1, begins[0])
    look(ingress, 0, offset=begins[0] - 1)
    with pytest.raises(InputDeleted, match=message):
        ingress.watermark(0, begins[0] - 1)


def test_a_source_that_goes_back_finds_again_what_was_forgotten(long):
    ingress = StreamIngress(long.place)
    look(ingress, 0, offset=0)
    ahead = all_read(ingress, 0, 0)
    for number in range(50, 60):
        add(long, [10 * number], [10 * number])
        look(ingress, 1_000 * number)
    assert len(ingress._records[0].blocks) <= 3 + 1, "what its source has left behind"
    assert len(ingress._records[1].blocks) <= 3 + 1, "nobody reads it here"
    tend(long, 23)
    back = StreamIngress(long.place)._manifests.read(30).before.offsets[0]
    assert look(ingress, 60_000, offset=back) == [LOOK], "at once, as after a rollback"
    assert ingress.read(0, back, 66)["n"].tolist() == ahead[0][back:]
    assert ingress.due_through(0, 0) == 76


def gets_to_start(chain, monkeypatch):
    """How many files a slot reads before it can go on near the end of a stream."""
    asked = []
    get = FileStore.get

    def counted(store, key, digest=None):
        asked.append(key)
        return get(store, key, digest)

    with monkeypatch.context() as patched:
        patched.setattr(FileStore, "get", counted)
        ingress = StreamIngress(chain.place)
        look(ingress, 0, offset=chain.last.before.offsets[0])
        assert ingress.read(0, chain.last.before.offsets[0], 999)["n"].tolist()
        opened = len(asked)
        StreamChain(chain.place)
        return opened, len(asked) - opened


def test_a_slot_and_a_query_that_start_read_a_few_files_however_long_the_stream_is(
    long, monkeypatch
):
    add(long, [1_000], [])
    StreamUpkeep(long.place).bundle()
    short = gets_to_start(long, monkeypatch)
    for _ in range(200):
        add(long, [1_000], [])
    StreamUpkeep(long.place).bundle()
    longer = gets_to_start(long, monkeypatch)
    assert longer[0] - short[0] <= 2 * 4, "two or three more steps of a search, of two files each"
    assert longer[1] == short[1]
