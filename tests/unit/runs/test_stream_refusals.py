"""Streams before anything is started: what a run refuses, and what it asks of their queries."""

from types import SimpleNamespace

import pytest

import snapline as sl
from snapline.dataflow.feeds.frames import StreamFeed
from snapline.rundir.directory import RunDirectory
from snapline.rundir.spec import Spec
from snapline.runs.sources import streams
from snapline.runs.sources.streams import check_streams, start_streams


def session():
    """A Spark session, as far as it is asked which one it is."""
    return SimpleNamespace(sparkContext=object())


def flow_over(frame):
    flow = sl.Dataflow("streamed")
    feed = StreamFeed({"n": "bigint"}, lambda spark: frame, None, 0, None, False, 5_000)
    flow.source(feed, name="bids").sink("all")
    return flow


def test_a_stream_of_another_session_is_refused(monkeypatch):
    monkeypatch.setattr(streams, "check_cores", lambda *_: None)
    given, other = session(), session()
    flow = flow_over(SimpleNamespace(sparkSession=other))
    message = (
        r"'bids' is a stream of another Spark session than the one that was given, or of one that"
    )
    with pytest.raises(sl.UsageError, match=message):
        check_streams(flow, Spec("streamed", slots=2), given, None)
    check_streams(flow, Spec("streamed", slots=2), other, None)


def test_input_is_kept_for_as_long_as_output(tmp_path):
    spec = Spec("streamed", slots=2, retain_ms=60_000)
    queries = start_streams(sl.Dataflow("none"), RunDirectory(tmp_path), session(), spec)
    assert queries.retain_ms == 60_000
