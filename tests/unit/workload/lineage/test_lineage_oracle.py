"""The oracle of PGVal's topologies: what it says of late events, and which problem each cause becomes."""

from collections import defaultdict
from functools import cache

import pytest

from interleaver import run
from snapline.batch import Batch, concat
from snapline.core.guarantee import Guarantee
from snapline.validate.causes import BREAKS, Cause
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params
from snapline.workload.lineage.model import event_label, lineage_of, shape_of
from snapline.workload.lineage.oracle import KINDS

NOTHING, BOUNDED, MOST, LEAST, EXACTLY = Guarantee
PARAMS = Params(seed=5)
LISTS = {"sst": ("ids",), "mst": ("get_ids", "post_ids")}
COUNTS = {"sst": ("count",), "mst": ("gets", "posts")}
both = pytest.mark.parametrize("name", LISTS)


@cache
def good(name):
    return run(WORKLOADS[name], PARAMS).output


def verdicts(name, **changed):
    output = {**good(name), **changed}
    return {level: WORKLOADS[name].judge(PARAMS, output, {}, level) for level in Guarantee}


def said(problems):
    return [(problem.kind, problem.record) for problem in problems]


@both
def test_the_output_is_what_a_plain_count_of_the_events_that_were_not_late_gives(name):
    late = set(good(name)["late"]["id"].tolist())
    assert late
    expected = defaultdict(lambda: [[], []])
    events = lineage_of(PARAMS, with_posts=name == "mst")
    for row in events.select("id", "time", "resource", "post").rows():
        event, time, resource, post = row
        if event not in late:
            window = time // shape_of(PARAMS).window_ms * shape_of(PARAMS).window_ms
            expected[resource, window][post].append(event)
    found = {}
    for row in (
        good(name)["counts"].select("resource", "window", *LISTS[name], *COUNTS[name]).rows()
    ):
        resource, window, *rest = row
        lists, counts = rest[: len(LISTS[name])], rest[len(LISTS[name]) :]
        assert counts == [len(ids) for ids in lists]
        assert (resource, window) not in found
        found[resource, window] = [sorted(ids) for ids in (*lists, [])[:2]]
    assert found == {place: [sorted(ids) for ids in sides] for place, sides in expected.items()}


@both
def test_the_time_of_an_output_is_that_of_its_latest_event(name):
    times = dict(lineage_of(PARAMS, with_posts=name == "mst").select("id", "time").rows())
    for time, *lists in good(name)["counts"].select("time", *LISTS[name]).rows():
        assert time == max(times[event] for ids in lists for event in ids)


@both
def test_a_late_event_that_is_lost_is_missing(name):
    late = good(name)["late"]
    problems = verdicts(name, late=late.slice(1, len(late)))
    assert said(problems[EXACTLY]) == [("missing", event_label(int(late["id"][0])))]
    assert [level for level in Guarantee if problems[level]] == [NOTHING, BOUNDED, LEAST, EXACTLY]


@both
def test_a_late_event_that_is_late_twice_is_a_duplicate(name):
    late = good(name)["late"]
    problems = verdicts(name, late=concat([late, late.slice(0, 1)]))
    assert said(problems[EXACTLY]) == [("duplicate", event_label(int(late["id"][0])))]
    assert "late twice" in problems[EXACTLY][0].because
    assert [level for level in Guarantee if problems[level]] == [NOTHING, BOUNDED, MOST, EXACTLY]


@both
def test_an_event_that_is_late_and_counted_is_a_duplicate_of_its_own_kind(name):
    first = good(name)["counts"][LISTS[name][0]].to_list()
    event = min(event for ids in first for event in ids)
    events = lineage_of(PARAMS, with_posts=name == "mst")
    row = events.take(events["id"] == event).select("id", "time", "resource")
    problems = verdicts(name, late=concat([good(name)["late"], row]))
    assert said(problems[EXACTLY]) == [("duplicate", event_label(event))]
    assert "is in the late output" in problems[EXACTLY][0].because
    assert "was counted" in problems[EXACTLY][0].because


def test_a_sentence_says_how_often():
    counts = good("sst")["counts"]
    (once,) = verdicts("sst", counts=counts.slice(1, len(counts)))[EXACTLY]
    (twice,) = verdicts("sst", counts=counts.slice(2, len(counts)))[EXACTLY]
    assert not once.because.endswith("in all)")
    assert twice.because.endswith(" (missing: 2 in all)")


def test_a_row_without_ids_is_known_by_its_place():
    empty = good("sst")["counts"].slice(0, 1).with_columns(**Batch.of(ids=[[]]).columns)
    (problem,) = verdicts("sst", counts=concat([good("sst")["counts"], empty]))[EXACTLY]
    resource, window = empty.select("resource", "window").rows()[0]
    assert (problem.kind, problem.record) == ("invented", f"resource {resource} in window {window}")


def test_every_cause_is_a_problem_of_a_kind_that_fits_what_it_breaks():
    assert list(KINDS) == list(Cause)
    breaks = {"missing": {LEAST, EXACTLY}, "wrong": {MOST, LEAST, EXACTLY}}
    for cause, kind in KINDS.items():
        assert BREAKS[cause] == breaks.get(kind, {MOST, EXACTLY}), cause


@both
@pytest.mark.parametrize(
    ("sink", "column"), [("counts", "time"), ("late", "time"), ("late", "resource")]
)
def test_what_a_row_repeats_of_its_events_has_to_be_right(name, sink, column):
    rows = good(name)[sink]
    if not len(rows):
        events = lineage_of(PARAMS, with_posts=name == "mst")
        rows = events.slice(0, 1).select("id", "time", "resource")
    wrong = rows[column].copy()
    wrong[0] -= 1
    problems = verdicts(name, **{sink: rows.with_columns(**{column: wrong})})
    assert "wrong" in [problem.kind for problem in problems[EXACTLY]]
