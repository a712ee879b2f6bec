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
    results = Results(ints(0, 10, 20), ints(18, 50, 60), ints(), ints())
    assert latencies(events, results, 10).tolist()[:2] == [3.0, 9.0]
    assert np.isnan(latencies(events, results, 10)[2])  # nothing came beyond the last window


def test_an_event_at_the_very_end_of_a_window_is_beyond_it():
    events = Events(ints(1, 10), ints(1, 10), np.ones(2, bool))
    assert latencies(events, Results(ints(0), ints(14), ints(), ints()), 10).tolist() == [4.0]


def test_the_failure_cost_is_the_greatest_latency_above_the_mean_before():
    results = Results(ints(0, 0, 0, 0), ints(10, 20, 110, 200), ints(), ints())
    parts = phases([(100, 150)], 300)
    assert failure_cost(results, np.array([2.0, 4.0, 50.0, 9.0]), parts) == 47.0
    assert failure_cost(results, np.array([20.0, 40.0, 5.0, 9.0]), parts) == 0.0
    assert failure_cost(results, np.array([np.nan, np.nan, 50.0, 9.0]), parts) is None
    assert failure_cost(results, np.array([2.0, 4.0, 50.0, 9.0]), phases([], 300)) is None


def test_an_event_counts_once_for_throughput_when_it_was_processed_first():
    events = Events(ints(1, 2, 3, 4), ints(1, 2, 1_200, 1_300), np.array([True, False, True, True]))
    results = Results(
        ints(0, 0), ints(900, 1_900), ints(1, 2, 3, 2, 4), ints(900, 900, 1_900, 1_900, 1_950)
    )
    found = figures(events, results, 1_000, phases([(1_000, 1_500)], 2_000))
    assert found.reliability == 75.0
    assert found.reliable_throughput == 2.0
    parts = found.phases
    assert [parts[name].reliable_throughput for name in parts] == [2.0, 0.0, 4.0]
    assert [parts[name].reliability for name in parts] == [50.0, 100.0, None]
    assert [parts[name].events for name in parts] == [2, 2, 0]


def test_only_all_of_them_are_a_hundred_percent():
    assert percent(99_999_999, 100_000_000) == 99.9999
    assert (percent(7, 7), percent(0, 7), percent(0, 0)) == (100.0, 0.0, None)


def test_without_events_or_outputs_there_are_figures_all_the_same():
    nothing = Results(ints(), ints(), ints(), ints())
    found = figures(Events(ints(), ints(), np.zeros(0, bool)), nothing, 10, phases([], 100))
    assert found.reliability is None
    assert found.latency_ms is None


@pytest.mark.parametrize("seed", range(5))
def test_latency_is_what_a_plain_search_finds(seed):
    rng = np.random.default_rng(seed)
    time, arrival = rng.integers(0, 100, 40), rng.integers(0, 200, 40)
    window, written = rng.integers(0, 12, 30) * 10, rng.integers(0, 300, 30)
    found = latencies(
        Events(time, arrival, np.ones(40, bool)), Results(window, written, ints(), ints()), 10
    )
    for w, at, latency in zip(window, written, found, strict=True):
        beyond = [a for t, a in zip(time, arrival, strict=True) if t >= w + 10]
        assert np.isnan(latency) if not beyond else latency == at - min(beyond)
