"""Plans drawn from seeds: always the same, always possible, and worth running."""

import subprocess
import sys
from collections import Counter

import pytest

from snapline.chaos.faults import (
    KINDS,
    At,
    BeforeEffect,
    Cut,
    DamageRecord,
    During,
    Kill,
    LaunchFailing,
    LaunchSlow,
    Partition,
    describe,
    parse,
    start_ms,
)
from snapline.chaos.plan import FAULTS_MAX, draw
from snapline.chaos.targets import check
from snapline.errors import UsageError

SEEDS = range(600)
DURATION_MS = 2_400


def plans(slots=3, **options):
    return [draw(seed, slots, DURATION_MS, **options) for seed in SEEDS]


def test_the_same_seed_gives_the_same_plan_under_any_hash_seed():
    program = (
        "from snapline.chaos.plan import draw; from snapline.chaos.faults import describe\n"
        "print([describe(draw(seed, 3, 2400)) for seed in range(50)])"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    ]
    here = [describe(draw(seed, 3, DURATION_MS)) for seed in range(50)]
    assert outputs[0] == outputs[1] == f"{here}\n"


def test_the_order_of_the_kinds_does_not_matter():
    assert plans(kinds=KINDS) == plans(kinds=tuple(reversed(KINDS)))
    assert plans() == plans(kinds=KINDS)


@pytest.mark.parametrize("slots", [1, 2, 5])
def test_every_plan_can_be_said_and_suits_the_job(slots):
    for plan in plans(slots):
        check(plan, slots)
        assert parse(describe(plan)) == plan
        assert 1 <= len(plan) <= FAULTS_MAX
        for fault in plan:
            assert not isinstance(fault, Cut) or fault.slot != fault.other
            at_ms = start_ms(fault)
            assert at_ms is None or 0 < at_ms <= 0.9 * DURATION_MS


def test_every_plan_has_a_kill_late_enough_for_a_commit():
    for plan in plans():
        times = [f.when.ms for f in plan if isinstance(f, Kill) and isinstance(f.when, At)]
        assert any(0.35 * DURATION_MS <= ms <= 0.85 * DURATION_MS for ms in times)


def test_all_kinds_and_all_sorts_of_kills_are_drawn_and_most_are_kills():
    faults = [fault for plan in plans() for fault in plan]
    kinds = Counter(fault.kind for fault in faults)
    assert set(kinds) == set(KINDS)
    assert kinds["kill"] > len(faults) / 2
    assert kinds["damage"] + kinds["damage-record"] < len(faults) / 20  # it may end a run
    kills = [fault for fault in faults if isinstance(fault, Kill)]
    assert {type(kill.when) for kill in kills} == {At, BeforeEffect, During}
    assert {kill.when.what for kill in kills if isinstance(kill.when, During)} == {
        "recovery",
        "round",
    }
    assert {len(kill.slots) for kill in kills} == {1, 2, 3}


def test_seeds_differ_in_how_many_faults_there_are():
    assert {len(plan) for plan in plans()} == {1, 2, 3, 4}


def test_seeds_switch_kinds_off():
    """Two pauses and no cut must be as normal as one of each."""
    repeated = [p for p in plans(kinds=("pause", "cut")) if len(p) == 4 and len({*kinds(p)}) == 1]
    assert len(repeated) > len([p for p in plans() if len(p) == 4]) / 3


def kinds(plan):
    return [fault.kind for fault in plan]


def test_only_the_allowed_kinds_are_drawn():
    for allowed in (("kill",), ("pause", "damage"), ("store-outage",)):
        drawn = {kind for plan in plans(kinds=allowed) for kind in kinds(plan)}
        assert drawn == set(allowed)


@pytest.mark.parametrize("allowed", [(), ("kill", "flood")])
def test_kinds_that_do_not_exist_are_refused(allowed):
    with pytest.raises(UsageError, match="store-outage"):
        draw(1, 3, DURATION_MS, kinds=allowed)


def test_steps_lie_within_the_run():
    steps = [
        f.when.n
        for p in plans(steps=50)
        for f in p
        if isinstance(f, Kill) and isinstance(f.when, BeforeEffect)
    ]
    assert (min(steps), max(steps)) == (1, 50)


def test_all_sorts_of_partitions_and_of_damage_are_drawn():
    faults = [fault for plan in plans() for fault in plan]
    records = {(f.record, f.lost) for f in faults if isinstance(f, DamageRecord)}
    assert records == {(r, lost) for r in ("decision", "manifest") for lost in (True, False)}
    cuts = [fault for fault in faults if isinstance(fault, Partition)]
    assert {None in cut.others for cut in cuts} == {True, False}
    assert {cut.for_ms > 0 for cut in cuts} == {True, False}


def test_trouble_with_starting_is_drawn_around_a_kill_of_the_slot():
    """Where nothing is started, nothing can fail to start."""
    for plan in plans():
        for fault in plan:
            if isinstance(fault, LaunchFailing | LaunchSlow):
                [late, *_] = [f for f in plan if isinstance(f, Kill)]
                assert fault.slot in late.slots
                assert fault.at_ms <= late.when.ms
