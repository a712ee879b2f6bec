"""Faults for a whole long run, from a seed."""

from itertools import pairwise

import pytest

from snapline.chaos.faults import Kill, Pause, check, describe, parse
from snapline.chaos.soak import soak
from snapline.errors import FaultSyntaxError

TEN_MINUTES = 600_000


def times(faults):
    return sorted(f.at_ms if isinstance(f, Pause) else f.when.ms for f in faults)


@pytest.mark.parametrize("seed", range(20))
def test_the_beginning_and_the_end_are_left_in_peace(seed):
    faults = soak(f"seed={seed} intensity=high", 3, TEN_MINUTES)
    assert times(faults)[0] >= 3_000
    assert times(faults)[-1] < 540_000
    assert all(f.at_ms + f.for_ms < 540_000 for f in faults if isinstance(f, Pause))


def test_a_plan_depends_on_its_arguments_alone_and_is_written_in_the_one_grammar():
    faults = soak("seed=7", 3, TEN_MINUTES)
    assert faults == soak("seed=7 intensity=medium", 3, TEN_MINUTES)
    assert parse(describe(faults)) == faults
    check(faults, 3)
    assert faults != soak("seed=8", 3, TEN_MINUTES)


@pytest.mark.parametrize(("intensity", "few", "many"), [("low", 20, 50), ("high", 75, 140)])
def test_intensity_says_how_often_something_breaks(intensity, few, many):
    for seed in range(20):
        assert few <= len(times(soak(f"seed={seed} intensity={intensity}", 2, TEN_MINUTES))) <= many


def test_every_sort_of_fault_comes_in_a_long_run():
    faults = soak("seed=7 intensity=high", 3, TEN_MINUTES)
    kills = [fault for fault in faults if isinstance(fault, Kill)]
    assert any(isinstance(fault, Pause) for fault in faults)
    assert any(len(kill.slots) > 1 for kill in kills)
    assert {slot for kill in kills for slot in kill.slots} == {0, 1, 2}
    in_recovery = [(a, b) for a, b in pairwise(kills) if b.when.ms - a.when.ms < 1_000]
    assert in_recovery
    assert all(a.slots != b.slots for a, b in in_recovery)


def test_a_job_of_one_slot_and_a_run_that_is_too_short_are_no_problem():
    assert all(
        f.slots == (0,) for f in soak("seed=1 intensity=high", 1, 60_000) if isinstance(f, Kill)
    )
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
