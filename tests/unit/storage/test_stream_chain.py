"""The chain of a stream: every micro-batch once, whoever tries, in whatever order its rows come."""

import os

import pytest

from snapline.errors import ObjectDamaged, ObjectMissing
from snapline.storage.streams.chain import (
    ChainRefused,
    StreamChain,
    StreamDescription,
    described_stream,
    pauses,
    read_manifests,
    records_late,
)
from snapline.storage.streams.ingress import StreamIngress
from snapline.storage.streams.upkeep import StreamUpkeep
from written_streams import QUERY, add, made_stream, own_file, written


@pytest.fixture(autouse=True)
def no_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda fd: None)


@pytest.fixture
def chain(tmp_path):
    return made_stream(tmp_path / "bids")


def numbers(chain):
    """What a reader that opens the stream now finds, per partition."""
    ingress = StreamIngress(chain.place)
    known = [ingress.due_through(p, 0) for p in range(ingress.partitions)]
    return [ingress.read(p, 0, stop)["n"].tolist() for p, stop in enumerate(known)]


def folders(chain):
    return sorted(path.name.partition("-")[0] for path in (chain.place / "batches").glob("*/*"))


def test_a_micro_batch_is_seen_once_its_manifest_is_there(chain):
    add(chain, [1, 3], [2])
    folder, segments = written(chain, 1, [4], [5])
    assert numbers(chain) == [[1, 3], [2]]
    assert chain.add(1, QUERY, folder, segments)
    assert numbers(chain) == [[1, 3, 4], [2, 5]]


def test_a_repeated_micro_batch_adds_nothing_even_with_rows_in_another_order(chain):
    """It is repeated by a driver that knows the manifest, and by one that does not know it yet."""
    early = written(chain, 0, [3, 2], [1])
    add(chain, [1, 3], [2])
    assert not chain.add(0, QUERY, *early)
    assert written(StreamChain(chain.place), 0, [3, 2], [1]) is None
    assert numbers(chain) == [[1, 3], [2]]
    assert folders(chain) == ["000000"], "what the loser has written is gone"


def test_of_two_drivers_that_race_exactly_one_adds_the_micro_batch(chain):
    """Both have looked, both have written, and neither knows of the other."""
    other = StreamChain(chain.place)
    mine, theirs = written(chain, 0, [1, 2], []), written(other, 0, [], [2, 1])
    other.refresh = lambda: None  # it does not look again before it writes
    won = other.add(0, QUERY, *theirs), chain.add(0, QUERY, *mine)
    assert won == (True, False)
    assert numbers(chain) == [[], [2, 1]]
    late = StreamChain(chain.place)
    late.last = None
    late.refresh = lambda: None
    folder = chain.place / "batches" / "1-128" / "000000-late"
    folder.mkdir()
    assert not late.add(0, QUERY, folder, {})
    assert folders(chain) == ["000000"]


def test_behind_the_seal_nothing_is_added_and_what_was_before_it_stays_there(chain):
    add(chain, [1], [2])
    attempt = written(chain, 1, [3], [4])
    other = StreamChain(chain.place)
    other.seal()
    other.seal()
    with pytest.raises(ChainRefused, match="has come to its end"):
        chain.add(1, QUERY, *attempt)
    with pytest.raises(ChainRefused, match="has come to its end"):
        chain.begin(1, QUERY)
    assert chain.begin(0, QUERY) is None, "this one is there"
    assert [manifest.sealed for manifest in read_manifests(chain.place)] == [False, True]
    assert numbers(chain) == [[1], [2]]
    assert folders(chain) == ["000000"]


def test_a_seal_comes_behind_the_micro_batch_that_was_quicker(chain):
    sealing = StreamChain(chain.place)
    refresh, put = sealing.refresh, sealing._put

    def after_another():
        if not sealing.length:
            add(chain, [1], [])
        return put()

    sealing._put = after_another
    sealing.seal()
    refresh()
    assert [manifest.sealed for manifest in read_manifests(chain.place)] == [False, True]
    assert numbers(chain) == [[1], []]


def test_a_query_that_has_lost_its_checkpoint_is_refused(chain):
    add(chain, [1], [2])
    with pytest.raises(ChainRefused, match="has lost its checkpoint"):
        chain.begin(0, "another query")


def test_a_query_that_is_ahead_of_the_chain_shows_that_manifests_are_gone(chain):
    add(chain, [1], [2])
    with pytest.raises(ChainRefused, match="only 1 of those before it"):
        chain.begin(2, QUERY)


def test_a_manifest_that_is_gone_or_damaged_is_found(chain):
    for time in range(3):
        add(chain, [time], [])
    path = own_file(chain.place, 2)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"n", b"m", 1))
    with pytest.raises(ObjectDamaged, match=r"2\.obj"):
        StreamIngress(chain.place).read(0, 0, 3)
    path.unlink()
    with pytest.raises(ObjectMissing, match=r"2\.obj is gone"):
        StreamChain(chain.place)
    with pytest.raises(ObjectMissing, match=r"2\.obj is gone"):
        StreamIngress(chain.place).end(0)


def test_only_leftovers_that_no_manifest_can_name_any_more_are_dropped(chain):
    """The second attempt at micro-batch 1 may be that of a driver which is about to add it."""
    written(chain, 0, [1], [2])
    add(chain, [1], [2])
    written(chain, 1, [3], [4])
    StreamUpkeep(chain.place).drop_leftovers()
    assert folders(chain) == ["000000", "000001"]
    assert numbers(chain) == [[1], [2]]


def test_what_a_stream_is_was_said_by_whoever_made_it_first(chain):
    first = described_stream(chain.place)
    again = made_stream(chain.place, partitions=7)
    assert described_stream(again.place) == first


def about(disorder_ms=0, idle_ms=100):
    return StreamDescription("id", {}, "time", disorder_ms, idle_ms, 2, begun_ms=0)


def test_rows_are_late_if_an_earlier_micro_batch_was_further_ahead_than_the_disorder(chain):
    add(chain, [10, 50], [20])
    add(chain, [40], [60])
    manifests = read_manifests(chain.place)
    assert records_late(about(disorder_ms=9), manifests)
    assert not records_late(about(disorder_ms=10), manifests)


def test_a_pause_is_as_long_as_half_of_the_idle_time(chain):
    add(chain, [1], [])
    (manifest,) = read_manifests(chain.place)
    since_ms = manifest.at_ms
    assert pauses(about(idle_ms=2 * since_ms), [manifest])
    assert not pauses(about(idle_ms=2 * since_ms + 1), [manifest])
