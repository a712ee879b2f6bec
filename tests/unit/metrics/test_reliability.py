"""PGVal's figures, against small runs whose figures can be said without computing."""

import numpy as np
import pytest

from snapline.metrics.reliability import (
    Events,
    Phase,
    Results,
    failure_cost,
    figures,
    latencies,
    percent,
    phases,
)


def ints(*values):
    return np.array(values, np.int64)


def put_out(window, written, claimed=(), claimed_at=(), correct=None):
    flags = np.ones(len(window), bool) if correct is None else np.array(correct)
    return Results(window, written, ints(*claimed), ints(*claimed_at), flags)


def test_phases_are_before_during_and_after_the_faults():
    assert phases([(5_000, 6_000), (8_000, 9_000)], 20_000) == (
        Phase("control", 0, 5_000),
        Phase("failure", 5_000, 9_000),
        Phase("recovery", 9_000, 20_000),
    )


def test_a_run_without_faults_is_all_control():
    assert phases([], 7_000) == (Phase("control", 0, 7_000),)


def test_a_fault_from_the_beginning_to_the_end_leaves_no_other_phase():
    assert phases([(0, 30_000)], 20_000) == (Phase("failure", 0, 20_000),)


def test_latency_counts_from_the_first_arrival_beyond_the_windows_end():
    # The event of time 12 arrives before that of time 10, which is the first *time* beyond the window.
    events = Events(ints(1, 12, 10, 25), ints(1, 15, 40, 41), np.ones(4, bool))
    results = put_out(ints(0, 10, 20), ints(18, 50, 60))
    assert latencies(events, results, 10).beyond.tolist()[:2] == [3.0, 9.0]
    assert np.isnan(latencies(events, results, 10).beyond[2])  # nothing came beyond the last window


def test_an_event_at_the_very_end_of_a_window_is_beyond_it():
    events = Events(ints(1, 10), ints(1, 10), np.ones(2, bool))
    assert latencies(events, put_out(ints(0), ints(14)), 10).beyond.tolist() == [4.0]


def test_the_other_two_latencies_count_from_the_first_and_the_last_arrival_inside_the_window():
    # Of window 0 events arrive at 2, 9 and 30; its output is written at 18, before the last of them.
    events = Events(ints(1, 5, 7, 12), ints(9, 2, 30, 15), np.ones(4, bool))
    found = latencies(events, put_out(ints(0, 10, 20), ints(18, 50, 60)), 10)
    assert found.first.tolist()[:2] == [16.0, 35.0]
    assert found.last.tolist()[:2] == [9.0, 35.0]
    assert np.isnan([found.first[2], found.last[2]]).all(), "nothing came in window 20"
    early = latencies(events, put_out(ints(0), ints(1)), 10)
    assert np.isnan(early.last[0]), "nothing had arrived by then"


def test_the_failure_cost_is_the_greatest_latency_above_the_mean_before():
    results = put_out(ints(0, 0, 0, 0), ints(10, 20, 110, 200))
    parts = phases([(100, 150)], 300)
    assert failure_cost(results, np.array([2.0, 4.0, 50.0, 9.0]), parts) == 47.0
    assert failure_cost(results, np.array([20.0, 40.0, 5.0, 9.0]), parts) == 0.0
    assert failure_cost(results, np.array([np.nan, np.nan, 50.0, 9.0]), parts) is None
    assert failure_cost(results, np.array([2.0, 4.0, 50.0, 9.0]), phases([], 300)) is None


def test_an_event_counts_once_for_throughput_when_it_was_processed_first():
    events = Events(ints(1, 2, 3, 4), ints(1, 2, 1_200, 1_300), np.array([True, False, True, True]))
    claimed_at = (900, 900, 1_900, 1_900, 1_950)
    results = put_out(ints(0, 0), ints(900, 1_900), (1, 2, 3, 2, 4), claimed_at, (True, False))
    found = figures(events, results, 1_000, phases([(1_000, 1_500)], 2_000))
    assert found.reliability == 75.0
    assert found.reliable_throughput == 2.0
    parts = found.phases
    assert [parts[name].reliable_throughput for name in parts] == [2.0, 0.0, 4.0]
    assert [parts[name].reliability for name in parts] == [50.0, 100.0, None]
    assert [parts[name].events for name in parts] == [2, 2, 0]
    assert found.correctness == 50.0
    assert [parts[name].correctness for name in parts] == [100.0, None, 0.0]


def test_only_all_of_them_are_a_hundred_percent():
    assert percent(99_999_999, 100_000_000) == 99.9999
    assert (percent(7, 7), percent(0, 7), percent(0, 0)) == (100.0, 0.0, None)


def test_without_events_or_outputs_there_are_figures_all_the_same():
    nothing = put_out(ints(), ints())
    found = figures(Events(ints(), ints(), np.zeros(0, bool)), nothing, 10, phases([], 100))
    assert found.reliability is None
    assert found.latency_ms is None
    assert (found.correctness, found.from_first_ms, found.from_last_ms) == (None, None, None)


@pytest.mark.parametrize("seed", range(5))
def test_latency_is_what_a_plain_search_finds(seed):
    rng = np.random.default_rng(seed)
    time, arrival = rng.integers(0, 100, 40), rng.integers(0, 200, 40)
    window, written = rng.integers(0, 12, 30) * 10, rng.integers(0, 300, 30)
    found = latencies(Events(time, arrival, np.ones(40, bool)), put_out(window, written), 10)
    seen = list(zip(time, arrival, strict=True))
    for w, at, beyond, first, last in zip(window, written, *found, strict=True):
        later = [a for t, a in seen if t >= w + 10]
        inside = [a for t, a in seen if w <= t < w + 10]
        before = [a for a in inside if a <= at]
        assert np.isnan(beyond) if not later else beyond == at - min(later)
        assert np.isnan(first) if not inside else first == at - min(inside)
        assert np.isnan(last) if not before else last == at - max(before)
