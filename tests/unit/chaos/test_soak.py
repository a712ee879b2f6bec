"""Faults for a whole long run, from a seed."""

from collections import Counter
from itertools import pairwise

import pytest

from snapline.chaos.faults import KINDS, Delay, Kill, Pause, describe, parse, start_ms
from snapline.chaos.soak import soak
from snapline.chaos.targets import check
from snapline.errors import FaultSyntaxError

TEN_MINUTES = 600_000
SEVEN = (
    "kill slot=0 at=8832ms; "
    "kill slot=0 at=20105ms; "
    "kill slot=0,1 at=32119ms; "
    "kill slot=1 at=46680ms"
)


INTENSITIES = ("low", "medium", "high")


def times(faults):
    return sorted(start_ms(fault) for fault in faults)


@pytest.mark.parametrize("intensity", INTENSITIES)
@pytest.mark.parametrize("seed", range(20))
def test_the_beginning_and_the_end_are_left_in_peace(seed, intensity):
    faults = soak(f"seed={seed} intensity={intensity}", 3, TEN_MINUTES)
    assert times(faults)[0] >= 3_000
    assert all(start_ms(f) + getattr(f, "for_ms", 0) < 540_000 for f in faults)
    assert parse(describe(faults)) == faults
    check(faults, 3)


def test_a_plan_depends_on_its_arguments_alone_and_is_written_in_the_one_grammar():
    faults = soak("seed=7", 3, TEN_MINUTES)
    assert faults == soak("seed=7 intensity=medium", 3, TEN_MINUTES)
    assert parse(describe(faults)) == faults
    check(faults, 3)
    assert faults != soak("seed=8", 3, TEN_MINUTES)


@pytest.mark.parametrize(
    ("intensity", "few", "many"), [("low", 20, 50), ("medium", 40, 70), ("high", 150, 240)]
)
def test_intensity_says_how_often_something_breaks(intensity, few, many):
    for seed in range(20):
        assert few <= len(times(soak(f"seed={seed} intensity={intensity}", 2, TEN_MINUTES))) <= many


def test_what_a_seed_alone_means_never_changes():
    """It stands in other people's notes."""
    assert describe(soak("seed=7", 2, 60_000)) == SEVEN


def test_every_sort_of_kill_comes_in_a_long_run():
    faults = soak("seed=7", 3, 2 * TEN_MINUTES)
    kills = [fault for fault in faults if isinstance(fault, Kill)]
    assert any(isinstance(fault, Pause) for fault in faults)
    assert any(len(kill.slots) > 1 for kill in kills)
    assert {slot for kill in kills for slot in kill.slots} == {0, 1, 2}
    in_recovery = [(a, b) for a, b in pairwise(kills) if b.when.ms - a.when.ms < 1_000]
    assert in_recovery
    assert all(a.slots != b.slots for a, b in in_recovery)


@pytest.mark.parametrize("seed", range(10))
def test_a_low_intensity_costs_one_slot_and_all_else_is_below_the_time_out(seed):
    faults = soak(f"seed={seed} intensity=low", 3, TEN_MINUTES)
    assert [len(f.slots) for f in faults if isinstance(f, Kill)] == [1]
    assert all(f.for_ms < 2_000 for f in faults if isinstance(f, Pause))
    assert all(f.delay_ms < 1_000 for f in faults if isinstance(f, Delay))
    assert {f.kind for f in faults} == {"kill", "pause", "delay", "store-slow"}


@pytest.mark.parametrize("seed", range(10))
def test_a_low_intensity_shows_also_in_a_short_run(seed):
    faults = soak(f"seed={seed} intensity=low", 2, 20_000)
    assert 2 <= len(faults) <= 8
    assert sum(isinstance(fault, Kill) for fault in faults) == 1


def test_a_high_intensity_breaks_everything_several_things_at_once():
    faults = soak("seed=7 intensity=high", 3, 2 * TEN_MINUTES)
    fatal = {"damage", "kill-coordinator", "kill-driver", "kill-executor", "pause-driver"}
    simulated = {"damage-record", "launch-failing", "launch-slow"}
    assert {fault.kind for fault in faults} == set(KINDS) - fatal - simulated
    at_once = Counter(times(faults))
    assert max(at_once.values()) >= 3
    delays = [f.delay_ms for f in faults if isinstance(f, Delay)]
    assert min(delays) < 2_000 < max(delays)
    cuts = [f.for_ms for f in faults if f.kind == "cut"]
    assert min(cuts) == 0 < max(cuts)


def test_a_job_of_one_slot_and_a_run_that_is_too_short_are_no_problem():
    for seed in range(20):
        for intensity in INTENSITIES:
            check(soak(f"seed={seed} intensity={intensity}", 1, 60_000), 1)
    assert soak("seed=1", 2, 3_000) == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        "seed=",
        "seed=-1",
        "seed=x",
        "intensity=high",
        "seed=7 seed=8",
        "seed=7 intensity=mad",
    ],
)
def test_anything_else_is_refused_with_what_was_expected(text):
    with pytest.raises(FaultSyntaxError, match=r"expected seed=7"):
        soak(text, 2, TEN_MINUTES)
