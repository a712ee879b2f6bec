"""What the judge knows of streams: when output that differs may be right, and when nobody can tell."""

import os

import pytest

import snapline as sl
from snapline.judge.by_reference import input_deleted, stream_doubt
from snapline.storage.streams.chain import StreamChain, describe_stream, read_manifests
from snapline.storage.streams.ingress import StreamIngress
from snapline.storage.streams.upkeep import StreamUpkeep
from written_streams import SCHEMA, add, made_stream


@pytest.fixture(autouse=True)
def no_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda fd: None)


def flow_over(*chains):
    flow = sl.Dataflow("judged")
    for chain in chains:
        name = chain.place.name
        flow.source(StreamIngress(chain.place), name=name).sink(f"all {name}")
    return flow


def test_rows_behind_the_disorder_are_a_doubt(tmp_path):
    chain = made_stream(tmp_path / "bids", disorder_ms=10)
    add(chain, [100], [120])
    add(chain, [110], [])
    assert stream_doubt(flow_over(chain)) is None
    add(chain, [], [109])
    doubt = stream_doubt(flow_over(chain))
    assert doubt is not None
    assert doubt.startswith("rows of the stream 'bids' came further behind the others")


def test_a_pause_is_a_doubt_where_another_source_may_go_ahead(tmp_path):
    """Without an idle time every moment is a pause."""
    quick, slow = made_stream(tmp_path / "quick"), made_stream(tmp_path / "slow", idle_ms=0)
    for chain in (quick, slow):
        add(chain, [100], [])
    assert stream_doubt(flow_over(quick)) is None
    assert stream_doubt(flow_over(slow)) is None, "there is nobody else"
    doubt = stream_doubt(flow_over(quick, slow))
    assert doubt is not None
    assert doubt.startswith("the stream 'slow' may have been idle")


def test_rows_without_a_time_are_never_late(tmp_path):
    place = tmp_path / "bids"
    describe_stream(place, SCHEMA, time=None, disorder_ms=0, idle_ms=0, partitions=2)
    chain = StreamChain(place)
    add(chain, [100], [])
    add(chain, [1], [])
    assert stream_doubt(flow_over(chain)) is None


def test_deleted_input_is_missed_by_name(tmp_path):
    whole, cut = made_stream(tmp_path / "whole"), made_stream(tmp_path / "cut")
    for time in (1, 2, 3):
        add(whole, [time], [])
        add(cut, [time], [])
    assert input_deleted(flow_over(whole, cut)) is None
    StreamUpkeep(cut.place).raise_floor(read_manifests(cut.place)[2].before.offsets, 1 << 60)
    said = input_deleted(flow_over(whole, cut))
    assert said is not None
    assert said.startswith(
        "the input of the stream 'cut' before micro-batch 2 was deleted by retain"
    )
