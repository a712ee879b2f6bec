"""The events of PGVal's topologies: producers, lags, shares, ids, and what a judge is given of them."""

from dataclasses import replace

import numpy as np
import pytest

from snapline.core.messages import END_OF_TIME
from snapline.workload.common.base import Params
from snapline.workload.lineage import model
from snapline.workload.lineage.model import POST_BIT, event_label, lineage_of, shape_of

FULL = Params(seed=3, partitions=2, records=40_000, duration_ms=20_000, full=True)
SMALL = Params(seed=3)
SOURCES = {"gets": model.gets, "gets beside": model.gets_beside_posts, "posts": model.posts}


def given(params, **settings):
    return replace(params, settings=tuple(settings.items()))


def due(source):
    return np.arange(source.records) * source.params.duration_ms // source.records


def test_the_papers_size_has_the_share_of_posts_of_the_paper():
    assert [source(FULL).records for source in SOURCES.values()] == [40_000, 39_800, 200]
    assert [source(SMALL).records for source in SOURCES.values()] == [60, 48, 12]
    half = given(FULL, posts=500)
    assert (model.gets_beside_posts(half).records, model.posts(half).records) == (20_000, 20_000)
    assert model.gets(half).records == 40_000


@pytest.mark.parametrize("records", [1, 2, 7])
def test_there_is_at_least_one_event_of_each_kind(records):
    tiny = Params(records=records, duration_ms=5)
    assert all(source(tiny).records >= 1 for source in SOURCES.values())


def lags_of(source, partition, producers):
    """The lags of each producer, by its events; times do not go below 0."""
    times = source.make(partition, 0, source.records)["time"]
    lags = np.where(times > 0, due(source) - times, -1)
    return [set(lags[n::producers].tolist()) - {-1} for n in range(producers)]


@pytest.mark.parametrize("name", SOURCES)
def test_the_times_of_a_producer_only_rise_and_lag_by_the_same(name):
    source = SOURCES[name](given(FULL, producers=5, disorder=3_000))
    times = source.make(1, 0, source.records)["time"]
    assert all((np.diff(times[n::5]) >= 0).all() for n in range(5))
    first, *others = lags_of(source, 1, 5)
    assert first == {0}
    assert [len(lags) for lags in others] == [1] * 4
    assert all(0 < lag <= 3_000 for lags in others for lag in lags)
    assert len(set.union(*others)) == 4


def test_a_producer_lags_with_both_kinds_alike_and_as_no_other():
    params = given(FULL, producers=4)
    gets, posts = model.gets_beside_posts(params), model.posts(params)
    assert lags_of(gets, 1, 4) == lags_of(posts, 1, 4)
    assert lags_of(gets, 1, 4) != lags_of(gets, 0, 4)


def behind(params):
    """The share of events that are older than the watermark when they are read."""
    source = model.gets(params)
    times = source.make(0, 0, source.records)["time"]
    marks = np.array([source.watermark(0, n) for n in range(source.records)])
    return float((times < marks).mean())


def test_a_bound_below_the_disorder_leaves_events_behind_the_watermark():
    small = given(SMALL, disorder=300, bound=300)
    assert behind(small) == 0
    assert behind(given(SMALL, disorder=300, bound=50)) > 0.1
    assert 0 < behind(FULL) < 0.75
    assert model.gets(SMALL).watermark(0, 60) == END_OF_TIME
    assert model.gets(SMALL).watermark(0, 30) == 1_200 - shape_of(SMALL).bound_ms


def test_all_resources_are_equally_represented():
    counts = np.bincount(lineage_of(given(FULL, resources=50), with_posts=True)["resource"])
    assert len(counts) == 50
    assert counts.min() > 1_400
    assert counts.max() < 1_800


def test_with_heat_one_resource_of_both_kinds_is_hot():
    events = lineage_of(replace(given(FULL, posts=300), hot=40), with_posts=True)
    for kind in (True, False):
        counts = np.bincount(events["resource"][events["post"] == kind])
        assert 0.38 < counts.max() / counts.sum() < 0.42
    hottest = [
        np.bincount(events["resource"][events["post"] == kind]).argmax() for kind in (True, False)
    ]
    assert hottest[0] == hottest[1]


def test_ids_are_unique_over_both_kinds_and_tell_where_an_event_stands():
    events = lineage_of(FULL, with_posts=True)
    assert len(np.unique(events["id"])) == len(events) == 80_000
    assert ((events["id"] & POST_BIT > 0) == events["post"]).all()
    place = (events["partition"] << 40) + events["offset"]
    assert (events["id"] & ~POST_BIT == place).all()
    assert event_label((1 << 40) + 17) == "GET 1:17"
    assert event_label(POST_BIT + (1 << 40) + 17) == "POST 1:17"
    assert POST_BIT > (1 << 14) << 40


def test_a_judge_gets_what_the_sources_read_and_when_it_was_due(monkeypatch):
    monkeypatch.setattr(model, "_PIECE", 7)
    events = lineage_of(SMALL, with_posts=True)
    sources = [model.gets_beside_posts(SMALL), model.posts(SMALL)]
    read = [source.everything() for source in sources]
    for name in ("id", "time", "resource", "post"):
        assert events[name].tolist() == [value for batch in read for value in batch[name]]
    expected = [time for source in sources for _ in range(3) for time in due(source).tolist()]
    assert events["arrival"].tolist() == expected
    marks = [s.watermark(p, n) for s in sources for p in range(3) for n in range(s.records)]
    assert events["watermark"].tolist() == marks
    at_once = lineage_of(replace(SMALL, at_once=True), with_posts=True)
    assert at_once["arrival"].max() == 0
    assert at_once["watermark"].tolist() == marks
    assert not lineage_of(SMALL, with_posts=False)["post"].any()


def test_what_is_not_given_is_as_the_size_says():
    assert shape_of(FULL) == model.LineageSettings(1_000, 4, 5, 1_000, 500, 200, 2_000)
    assert shape_of(given(SMALL, window=70, bound=9)) == model.LineageSettings(
        6, 3, 200, 300, 9, 20, 70
    )


@pytest.mark.parametrize("params", [FULL, SMALL, replace(SMALL, at_once=True)])
@pytest.mark.parametrize("with_posts", [False, True])
def test_any_range_of_events_is_that_of_all_events(params, with_posts):
    ranges = model.event_ranges(params, with_posts=with_posts)
    events = lineage_of(params, with_posts=with_posts)
    streams, offsets = ranges.places(events["id"])
    assert ranges.streams == len(np.unique(streams)) == params.partitions * (1 + with_posts)
    for stream in range(ranges.streams):
        mine = events.take(streams == stream)
        assert offsets[streams == stream].tolist() == list(range(ranges.end(stream)))
        assert ranges.make(stream, 3, 9).rows() == mine.slice(3, 9).rows()
        for time_ms in (0, 137, 1_000, 100_000):
            through = ranges.through(stream, time_ms)
            assert (mine["time"][through:] > time_ms).all()
            behind = np.arange(through) * params.duration_ms // ranges.end(stream)
            assert (behind <= time_ms + ranges.disorder_ms).all()


def test_ids_of_nobody_have_no_place():
    nobody = [-1, -POST_BIT, 60, 3 << 40, POST_BIT, POST_BIT | 12, 2 * POST_BIT]
    streams, _ = model.event_ranges(SMALL, with_posts=False).places(np.array(nobody))
    assert set(streams.tolist()) == {-1}
    streams, _ = model.event_ranges(SMALL, with_posts=True).places(np.array(nobody))
    assert streams.tolist() == [-1, -1, -1, -1, 3, -1, -1]
