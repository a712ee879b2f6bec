"""What came again: excused where two lives of a task may have put it out, and nowhere else."""

import random
from dataclasses import replace

import numpy as np
import pytest
from loss_runs import model_of, recorded, repeated_once

from snapline.batch import concat
from snapline.sim.case import Case
from snapline.sim.run import simulate
from snapline.workload import WORKLOADS

WINDOWED = ("fab", "gjoin", "q5", "q6", "q7", "sjoin")
"""Where repeats are rare: most of what comes again is late, or is met in the same window."""
EVERY = sorted({name for name in WORKLOADS if WORKLOADS[name].judges_losses} - {*WINDOWED})
LINGERS_MS = 500 + 300 + 400  # a pause, until it is given up, and until its lease has lapsed


def drawn(workload, seed, faults=None, **given):
    """A run under partial; its policies are drawn, and its faults if none are given."""
    return Case("partial", workload, seed, guarantee="bounded-loss", faults=faults, **given)


@pytest.mark.parametrize("workload", EVERY)
def test_partial_loses_and_repeats_only_what_it_may(workload):
    repeats = 0
    for seed in range(1, 9):
        outcome = simulate(drawn(workload, seed))
        assert outcome.violation is None, (outcome.violation, outcome.case.command())
        plain = simulate(replace(outcome.case, guarantee="nothing"))
        repeats += any(problem.startswith("duplicate") for problem in plain.problems)
    assert repeats, "nothing ever came again, so nothing was excused"


@pytest.mark.parametrize("workload", WINDOWED)
def test_partial_loses_and_repeats_only_what_it_may_in_windows(workload):
    for seed in (1, 2):
        outcome = simulate(drawn(workload, seed))
        assert outcome.violation is None, (outcome.violation, outcome.case.command())


def test_a_sale_that_was_put_out_before_its_task_was_lost_does_not_come_again():
    """The task had gone back to a checkpoint in which the auction was still open."""
    outcome = simulate(drawn("q6", 44))
    assert outcome.violation is None, outcome.violation


def tamper(monkeypatch, workload, protocol, faults, lingers_ms, wanted):
    """Repeat records of runs that cannot have come again; return how many of them were excused."""
    rng, tried, seed = random.Random(f"{workload} {protocol}"), 0, 0
    while tried < wanted:
        seed += 1
        assert seed < 60, "too few runs have anything that can be repeated"
        case = replace(drawn(workload, seed, faults(seed)), protocol=protocol)
        it = recorded(monkeypatch, case)
        assert it.outcome.violation is None, (it.outcome.violation, case.command())
        if not it.declared or (protocol == "partial" and not it.job.kept):
            continue
        for _ in range(8):
            public = repeated_once(it, model_of(case), rng, lingers_ms)
            if public is not None:
                tried += 1
                kinds = {problem.kind for problem in it.judged(public=public)}
                assert kinds & {"duplicate", "wrong"}, f"a repeat was excused: {case.command()}"


@pytest.mark.parametrize("workload", EVERY)
def test_a_repeat_outside_of_what_was_sent_again_is_never_excused(monkeypatch, workload):
    def kill(seed):
        return f"kill slot={seed % 3} at={900 + 37 * (seed % 13)}ms"

    tamper(monkeypatch, workload, "partial", kill, 0, 24)


@pytest.mark.parametrize("workload", EVERY)
def test_a_repeat_that_no_lingering_slot_explains_is_never_excused(monkeypatch, workload):
    def pause(seed):
        return f"pause slot={seed % 3} at={300 + 37 * (seed % 13)}ms for=500ms"

    tamper(monkeypatch, workload, "none", pause, LINGERS_MS, 24)


def kept_run(monkeypatch):
    """A run of q1 in which the conversion goes back to a checkpoint, and its input is sent again."""
    inputs, save = (("convert", "keep"),), (("convert", "200ms"),)
    case = drawn("q1", 5, "kill slot=1 at=1200ms", inputs=inputs, save=save)
    it = recorded(monkeypatch, case)
    assert it.outcome.violation is None
    return it, it.public["results"]


def test_only_what_passed_the_lost_task_since_its_checkpoint_may_come_again(monkeypatch):
    it, sink = kept_run(monkeypatch)
    times, slots = sink["time"], sink["id"] >> 40
    once = np.flatnonzero(np.isin(sink["id"], _single(sink["id"])))
    inside = [n for n in once.tolist() if slots[n] == 1 and 1_000 <= times[n] <= 1_190]
    outside = [n for n in once.tolist() if slots[n] != 1 or times[n] > 1_200]
    assert len(inside) + len(sink) - len(once) > 3
    assert len(outside) > 50
    for n in inside:
        assert it.judged(public={"results": concat([sink, sink.take(np.array([n]))])}) == ()
    for n in outside:
        (problem,) = it.judged(public={"results": concat([sink, sink.take(np.array([n]))])})
        assert problem.kind == "duplicate"


def test_what_comes_again_is_right_each_time(monkeypatch):
    it, sink = kept_run(monkeypatch)
    again = sink.take((sink["id"] >> 40 == 1) & (sink["time"] >= 1_000) & (sink["time"] <= 1_190))
    wrong = again.with_columns(price=again["price"] + 1)
    for n in range(len(again)):
        one = wrong.take(np.array([n]))
        assert "wrong" in {p.kind for p in it.judged(public={"results": concat([sink, one])})}


def test_many_excused_repeats_do_not_hide_one_that_is_not(monkeypatch):
    """Only the first few differences are looked at: those that are excused must not count among them."""
    it, sink = kept_run(monkeypatch)
    may = sink.take((sink["id"] >> 40 == 1) & (sink["time"] >= 1_000) & (sink["time"] <= 1_190))
    (last,) = np.flatnonzero(sink["time"] == sink["time"].max())[:1]
    public = concat([sink, *[may] * 9, sink.take(np.array([last]))])
    (problem,) = it.judged(public={"results": public})
    assert problem.kind == "duplicate"


def test_two_coordinators_that_run_to_the_end_prove_nothing():
    """Nothing is ever decided here, so the first one never learns of the second."""
    outcome = simulate(drawn("q1", 14))
    assert outcome.violation is None
    assert "both ran the job to its end" in outcome.vacuous


def _single(ids):
    distinct, copies = np.unique(ids, return_counts=True)
    return distinct[copies == 1]
