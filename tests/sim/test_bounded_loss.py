"""Runs that may lose something: what a loss explains is never held against them, and all else is."""

import random
from dataclasses import replace

import numpy as np
import pytest
from loss_runs import SLOTS, batch_of, model_of, recorded, rows_of, tampered

from snapline.batch import Batch
from snapline.ids import INITIAL, TaskId
from snapline.journal.loss_happenings import TaskLoss
from snapline.kernels.routing import target_of
from snapline.sim.case import Case
from snapline.sim.run import simulate
from snapline.workload import WORKLOADS

WINDOWED = ("q5", "q6", "q7", "fab", "sjoin", "gjoin")
"""Where a loss may change what comes long after it. Their runs are slow, so they are tried less often."""
EVERY = ("counting", "q1", "q3", "q8", "q12", "habits", "abs", "sst", "mst", "nhop", "reachability")
EVERY += WINDOWED


def case_of(workload, seed, faults, **given):
    return Case("none", workload, seed, guarantee="bounded-loss", faults=faults, **given)


def kill(seed, at=(400, 2_200)):
    rng = random.Random(seed)
    return f"kill slot={rng.randrange(3)} at={rng.randrange(*at)}ms"


def test_every_workload_whose_oracle_knows_of_losses_is_tried():
    assert sorted(EVERY) == sorted(name for name in WORKLOADS if WORKLOADS[name].judges_losses)


def test_an_oracle_that_knows_of_no_losses_is_asked_only_if_nothing_was_lost(monkeypatch):
    """Nobody could say which of its rows a loss touches; what was declared is judged all the same."""
    it = recorded(monkeypatch, case_of("q1", 5, "kill slot=1 at=1200ms"))
    deaf = replace(WORKLOADS["q1"], judges_losses=False)
    monkeypatch.setitem(WORKLOADS.own, "q1", deaf)
    assert it.judged() == ()
    assert it.judged(declared=())
    assert it.judged(strikes=())


@pytest.mark.parametrize("workload", EVERY)
def test_what_is_lost_with_a_slot_is_excused(workload):
    lost = 0
    for seed in range(1, 3 if workload in WINDOWED else 6):
        once = kill(seed, (400, 1_200))
        again = once.partition(" at=")[0] + " at=1900ms"
        faults = (once, f"{once} for=600ms", f"{once}; {again}")[seed % 3]
        outcome = simulate(case_of(workload, seed, faults))
        assert outcome.violation is None, (outcome.violation, outcome.case.command())
        plain = simulate(replace(outcome.case, guarantee="nothing"))
        lost += bool(plain.problems)
    assert lost, "nothing was ever lost, so nothing was excused"


@pytest.mark.parametrize("workload", EVERY)
def test_without_a_fault_nothing_is_lost_and_nothing_declared(monkeypatch, workload):
    it = recorded(monkeypatch, case_of(workload, 3, ""))
    assert (it.declared, it.outcome.violation) == ((), None)


@pytest.mark.parametrize("workload", EVERY)
def test_what_no_loss_explains_is_never_excused(monkeypatch, workload):
    """One record removed outside of every declared loss, one repeated, one moved."""
    rng = random.Random(f"tampering with {workload}")
    wanted, tried = 24 if workload in WINDOWED else 200, 0
    seed = 0
    while tried < wanted:
        seed += 1
        it = recorded(monkeypatch, case_of(workload, seed, kill(seed, (1_200, 2_200))))
        assert it.outcome.violation is None, (it.outcome.violation, it.case.command())
        if not it.declared:
            continue
        model = model_of(it.case)
        for number in range(72):
            what = ("removed", "repeated", "moved")[number % 3]
            public = tampered(what, it, model, rng)
            if public is None:
                continue
            tried += 1
            problems = it.judged(public=public)
            assert problems, f"one {what} was excused: {it.case.command()}"
            if what == "removed":
                assert "missing" in {problem.kind for problem in problems}
            if what == "repeated":
                assert "missing" not in {problem.kind for problem in problems}


@pytest.mark.parametrize("workload", ["counting", "q12"])
def test_a_number_is_right_unless_its_task_lost_what_it_had_counted(monkeypatch, workload):
    rng, tried = random.Random(f"numbers of {workload}"), 0
    for seed in range(1, 6):
        it = recorded(monkeypatch, case_of(workload, seed, kill(seed, (1_200, 2_200))))
        model = model_of(it.case)
        (lost,) = {loss.slot for loss in it.losses}
        sink = it.public[model.sink]
        rows = rows_of(sink)
        firm = [n for n, row in enumerate(rows) if target_of(row[model.values[0]], SLOTS) != lost]
        for n in rng.sample(firm, 20):
            changed = [dict(row) for row in rows]
            changed[n]["count"] = max(changed[n]["count"] + rng.choice((-1, 1, 40)), 0)
            problems = it.judged(public={model.sink: batch_of(changed, sink)})
            assert problems, (seed, rows[n], changed[n])
            tried += 1
    assert tried == 100


def test_a_prediction_from_before_a_loss_is_never_excused(monkeypatch):
    it = recorded(monkeypatch, case_of("fab", 3, "kill slot=1 at=2200ms"))
    sink = it.public["quality"]
    early = np.flatnonzero(sink["time"] < 2_200 - it.bound.lag_ms)[:5].tolist()
    assert early
    for n in early:
        more = (np.arange(len(sink)) == n).astype(np.int64)
        changed = {name: sink[name] + more for name in ("predicted", "quality")}
        (problem,) = it.judged(public={"quality": sink.with_columns(**changed)})
        assert problem.kind == "wrong"


def test_a_window_by_rows_from_before_a_loss_is_never_excused(monkeypatch):
    it = recorded(monkeypatch, case_of("habits", 3, "kill slot=1 at=2200ms"))
    assert it.declared
    sink = it.public["results"]
    # A row that came behind one which a loss may have touched is not judged, so a margin is left.
    early = np.flatnonzero(sink["time"] < 2_200 - it.bound.lag_ms - 200)
    assert len(early) > 10
    for n in early.tolist():
        total = sink["total"] + (np.arange(len(sink)) == n)
        (problem,) = it.judged(public={"results": sink.with_columns(total=total)})
        assert problem.kind == "wrong"


def test_a_window_that_a_lost_task_had_put_out_is_not_opened_again():
    """An event that is late came to a task that had restarted, and that knew no time yet."""
    outcome = simulate(case_of("mst", 1, "kill slot=0 at=1465ms"))
    assert outcome.violation is None


# Two who would have everything excused.


def lost_run(monkeypatch, workload="q1", seed=5):
    it = recorded(monkeypatch, case_of(workload, seed, "kill slot=1 at=1200ms"))
    assert it.declared
    assert it.outcome.violation is None
    return it


@pytest.mark.parametrize("workload", EVERY)
def test_everything_declared_lost_is_no_excuse(monkeypatch, workload):
    it = lost_run(monkeypatch, workload)
    nothing = {sink: Batch({}, 0) for sink in it.public}
    everything = [TaskLoss(task, INITIAL, 0, 2_400) for task in it.job.topology.tasks]
    for declared in (everything, [*it.declared, *everything]):
        problems = it.judged(public=nothing, declared=tuple(declared))
        assert problems[0].record.startswith("declared loss of ")
    struck = tuple(replace(loss, to_ms=9_000) for loss in it.declared)
    assert "all that it costs was due by" in it.judged(declared=struck)[0].because
    assert it.judged(public=nothing), "what was put out before the slot was struck is not lost"


def test_five_records_declared_and_five_others_dropped_is_no_excuse(monkeypatch):
    it = lost_run(monkeypatch)
    sink = it.public["results"]
    others = [
        n
        for n, (record, time) in enumerate(
            zip(sink["id"].tolist(), sink["time"].tolist(), strict=True)
        )
        if record >> 40 != 1 and time > 1_200
    ][:5]
    kept = [n for n in range(len(sink)) if n not in others]
    problems = it.judged(public={"results": sink.take(np.array(kept))})
    assert [problem.kind for problem in problems] == ["missing"] * 5
    # The other way round: what is missing is as it was, and other times are declared.
    early = tuple(replace(loss, from_ms=0, to_ms=1_201) for loss in it.declared)
    assert it.judged(declared=early)
    elsewhere = tuple(
        replace(loss, task=TaskId(loss.task.replace("/1", "/2"))) for loss in it.declared
    )
    assert "no fault struck slot 2" in it.judged(declared=elsewhere)[0].because


def test_an_undeclared_loss_is_no_loss(monkeypatch):
    it = lost_run(monkeypatch)
    assert it.judged(declared=())


def test_a_loss_without_a_fault_that_struck_is_none(monkeypatch):
    it = lost_run(monkeypatch)
    problem = it.judged(strikes=())[0]
    assert "no fault struck slot 1 before that" in problem.because


def test_losses_inside_of_the_bound_are_never_accused(monkeypatch):
    """Any records that were due at the lost source while it was away may be missing."""
    it = lost_run(monkeypatch)
    sink, rng = it.public["results"], random.Random(1)
    (death,) = {loss.death_ms for loss in it.losses}
    (back,) = {loss.to_ms for loss in it.losses}
    time, at = sink["time"], sink["id"] >> 40
    inside = [n for n in range(len(sink)) if at[n] == 1 and death - 500 <= time[n] <= back]
    assert len(inside) > 5
    for _ in range(200):
        gone = set(rng.sample(inside, rng.randrange(1, len(inside) + 1)))
        kept = [n for n in range(len(sink)) if n not in gone]
        assert it.judged(public={"results": sink.take(np.array(kept))}) == ()
