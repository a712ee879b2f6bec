"""The search for a capacity, and what makes a rate sustainable."""

import numpy as np
import pytest

from snapline.experiments.rates.capacity import (
    BRIEF,
    TRIALS_MAX,
    USUAL,
    CapacitySearch,
    Trial,
    expected_tries,
)
from snapline.experiments.rates.pace import Window, is_hopeless, objections, window_of
from snapline.metrics.second import Second

RATE = 1_000
WINDOW = Window(5, 15)


def machine(capacity, noise=0.0, seed=1, *, by_far=False):
    """A machine that sustains rates up to its capacity, which differs from try to try."""
    dice = np.random.default_rng(seed)

    def attempt(rate):
        today = capacity * np.exp(noise * dice.standard_normal())
        return Trial(rate, () if rate <= today else ("too fast",), by_far)

    return attempt


@pytest.mark.parametrize("capacity", [1, 7, 950, 12_345, 3_000_000])
@pytest.mark.parametrize("start", [1, 1_000, 50_000_000])
def test_the_capacity_lies_between_the_ends(capacity, start):
    found = CapacitySearch(machine(capacity)).run(start)
    assert found.low <= capacity < found.high
    assert found.high <= max(1.05 * found.low, found.low + 1)
    assert [t.rate for t in found.trials].count(found.low) >= 3
    assert [t.rate for t in found.trials].count(found.high) >= 3


def test_a_noisy_machine_does_not_mislead_it_much():
    found = [CapacitySearch(machine(100_000, 0.05, seed)).run(70_000) for seed in range(200)]
    estimates = np.array([each.estimate for each in found])
    assert np.mean(np.abs(np.log(estimates / 100_000)) < 0.1) > 0.95
    assert max(len(each.trials) for each in found) <= TRIALS_MAX + 10


def test_where_tries_contradict_each_other_the_span_says_so():
    found = [CapacitySearch(machine(100_000, 0.05, seed)).run(70_000) for seed in range(200)]
    within = [each.low <= 100_000 <= each.high for each in found]
    spanned = [each.span[0] <= 100_000 <= each.span[1] for each in found]
    assert np.mean(within) < 0.6 < 0.8 < np.mean(spanned)
    sure = CapacitySearch(machine(100_000)).run(70_000)
    assert sure.span == (sure.low, sure.high)
    assert CapacitySearch(machine(0)).run(1_000).span == (0, 1)


@pytest.mark.parametrize(("lucky", "unlucky"), [(1.3, 1.0), (1.0, 0.8)])
def test_the_first_try_of_a_rate_does_not_decide(lucky, unlucky):
    """First tries are lucky up to a higher rate, or unlucky from a lower one on; others tell the truth."""
    tried = set()

    def attempt(rate):
        bound = 1_000 if rate in tried else 1_000 * lucky * unlucky
        tried.add(rate)
        return Trial(rate, () if rate <= bound else ("too fast",))

    found = CapacitySearch(attempt).run(700)
    assert found.low <= 1_000 < found.high


def scanned(attempt, start, step=1.05, tries=3):
    """The plain way: every rate in small steps from below, until most tries of one are not sustained."""
    low, rate = 0, start
    while 2 * sum(attempt(rate).sustained for _ in range(tries)) > tries:
        low, rate = rate, round(rate * step)
    return low, rate


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("capacity", [900, 40_000, 2_500_000])
def test_a_noisy_machine_has_the_capacity_that_a_scan_in_small_steps_finds(capacity, seed):
    found = CapacitySearch(machine(capacity, 0.02, seed)).run(round(0.6 * capacity))
    low, high = scanned(machine(capacity, 0.02, seed + 100), round(0.7 * capacity))
    assert found.low <= high
    assert low <= found.high


def test_a_brief_search_asks_for_less():
    found = CapacitySearch(machine(12_345, by_far=True), BRIEF).run(9_000)
    assert found.low <= 12_345 < found.high <= 1.1 * found.low
    assert len({trial.rate for trial in found.trials}) == len(found.trials) == expected_tries(BRIEF)
    assert expected_tries(BRIEF) < expected_tries(USUAL) / 1.5


def test_in_a_brief_search_a_near_miss_has_a_second_chance():
    """Every first try of a rate fails: what the second says counts."""
    tried = set()

    def attempt(rate):
        lucky = rate in tried
        tried.add(rate)
        return Trial(rate, () if lucky and rate <= 12_345 else ("too fast",))

    found = CapacitySearch(attempt, BRIEF).run(9_000)
    assert found.low <= 12_345 < found.high <= 1.1 * found.low


@pytest.mark.parametrize("form", [USUAL, BRIEF])
@pytest.mark.parametrize("capacity", [10_000, 12_000, 19_000])
def test_it_knows_how_many_tries_are_left(form, capacity):
    left = []

    def attempt(rate):
        left.append(search.left())
        return Trial(rate, () if rate <= capacity else ("too fast",), by_far=True)

    search = CapacitySearch(attempt, form)
    found = search.run(10_000)
    assert left == [*range(len(found.trials), 0, -1)]


def test_a_machine_that_sustains_nothing_and_one_that_sustains_all():
    assert CapacitySearch(machine(0)).run(1_000).low == 0
    all_of_it = CapacitySearch(machine(10**12), highest=1_000).run(10)
    assert (all_of_it.low, all_of_it.high) == (1_000, 2_000)


def second(at_s, read=RATE, backlog=3, p99_ms=2.0, lines=None):
    found = Second(at_s, running=2, read=read, written=read, backlog=backlog)
    found.lines = at_s if lines is None else lines
    now_us = 10**12
    found.latency.add_ages(np.full(100, (now_us - p99_ms * 1_000) / 1_000), now_us)
    return found


def said(seconds, interval_ms=1_000):
    return list(objections(seconds, RATE, interval_ms, WINDOW))


def test_a_run_that_keeps_pace_has_no_objections():
    assert said([second(at) for at in range(21)]) == []
    assert said([second(at, lines=0) for at in range(21)], interval_ms=None) == []


@pytest.mark.parametrize(
    ("spoilt", "because"),
    [
        (lambda at: second(at, backlog=300 * (at % 2)), "the backlog may grow by"),
        (lambda at: second(at, p99_ms=10 if at < 12 else 40), "p99 rose from 10"),
        (lambda at: second(at, lines=at // 2), "a line was committed every 2"),
        (lambda at: second(at, lines=0), "no line was committed for 15 s"),
        (lambda at: second(at, lines=3 * min(at, 15)), "no line was committed in the last 4 s"),
        (lambda at: second(at, backlog=None), "the backlog is not known"),
        (lambda at: Second(at, read=RATE, backlog=0, lines=at), "nothing was put out"),
    ],
)
def test_each_rule_is_said(spoilt, because):
    [found] = said([spoilt(at) for at in range(21)])
    assert found.startswith(because)


def test_what_was_not_read_is_what_the_backlog_has_grown_by():
    late = [second(at, backlog=3 if at < 19 else 300) for at in range(21)]
    assert said(late)[0] == "only 97.9% of what was due was read"
    # Of one second the last heartbeats came too late to count, and of the next one there is more.
    uneven = [second(at, read={19: 600, 20: 1_400}.get(at, RATE)) for at in range(21)]
    assert said(uneven) == []


def test_one_second_in_which_the_machine_stood_still_is_no_growth_of_latency():
    assert said([second(at, p99_ms=300 if at in (15, 18) else 12) for at in range(21)]) == []
    brief = list(objections([second(at, p99_ms=300 if at == 12 else 12) for at in range(14)],
                            RATE, 1_000, Window(5, 8)))  # fmt: skip
    assert brief == []


def test_a_few_seconds_are_not_judged_by_their_noise():
    """As a quick form has it: five seconds. Identical rates were refused for this in every second try."""
    stalled = [
        second(at, backlog=150 * (at == 8), p99_ms=62 if at >= 9 else 10) for at in range(11)
    ]
    assert list(objections(stalled, RATE, 1_000, Window(5, 5))) == []
    # Who takes in a tenth less than comes is still found out.
    behind = [second(at, backlog=100 * at, p99_ms=100 * (at + 1)) for at in range(11)]
    assert list(objections(behind, RATE, 1_000, Window(5, 5)))[:2] == [
        "only 90.0% of what was due was read",
        "the backlog may grow by 100 records a second",
    ]


@pytest.mark.parametrize(
    ("segments", "because"),
    [
        (lambda at: 1.0, []),
        (lambda at: 1 + at % 3, []),  # they come and are pruned
        (lambda at: 1 + at / 10, []),  # two more are what cannot be told from outside
        (lambda at: at, ["logs grew from 7.0 to 17.0 segments of a task, and were not pruned"]),
    ],
)
def test_logs_that_are_not_pruned_are_noticed(segments, because):
    seconds = [second(at) for at in range(21)]
    kept = {at: segments(at) for at in range(21)}
    assert list(objections(seconds, RATE, 1_000, WINDOW, kept)) == because


def test_what_happens_in_the_warm_up_and_after_the_window_does_not_count():
    odd = [second(at, read=0, backlog=10_000, p99_ms=5_000, lines=0) for at in range(5)]
    late = [second(at, read=0, backlog=10_000, p99_ms=5_000) for at in range(20, 30)]
    assert said([*odd, *(second(at) for at in range(5, 20)), *late]) == []


def test_a_run_that_was_over_too_soon_proves_nothing():
    assert said([second(at) for at in range(12)]) == ["it was measured for 7 of 15 s"]


def test_a_latency_that_is_small_may_double():
    assert said([second(at, p99_ms=1 if at < 12 else 6) for at in range(21)]) == []


def test_windows_have_five_checkpoints():
    assert window_of(1_000) == Window(5, 15)
    assert window_of(5_000) == Window(10, 25)
    assert window_of(5_000, 60) == Window(10, 60)


def test_a_run_far_behind_is_hopeless():
    assert not is_hopeless(second(1, backlog=3_000), RATE)
    assert is_hopeless(second(1, backlog=3_001), RATE)
    assert not is_hopeless(second(1, backlog=None), RATE)
