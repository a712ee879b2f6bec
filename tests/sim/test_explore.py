"""Shrinking a failing case, its file and command, and sweeps that prove nothing."""

import json
import os
import shlex
import signal
from dataclasses import replace
from typing import Any

import pytest
from sim_runs import Case, Outcome, can_run, simulate

from snapline.chaos.faults import parse
from snapline.errors import UsageError
from snapline.protocols import PROTOCOLS
from snapline.protocols.aligned import AlignedTask
from snapline.sim import explore
from snapline.sim.explore import ALWAYS_SHOWN, shrink_case, sweep, vacuous
from snapline.sim.run import Violation
from snapline.workload import WORKLOADS

CASE = Case("unaligned", "q3", 7, slots=4, records=9, guarantee="at-most-once", faults="")


# A case as text.


@pytest.mark.parametrize("faults", [None, "", "kill slot=1 at=800ms; store outage at=1s for=2s"])
def test_a_case_comes_back_from_its_file(faults):
    case = replace(CASE, faults=faults)
    assert Case.from_json(case.to_json()) == case


@pytest.mark.parametrize(
    "text",
    ["", "[]", "7", "{}", '{"case": 1, "protocol": "none"}', '{"case": 1, "speed": 3}'],
)
def test_another_file_is_refused(text):
    with pytest.raises(UsageError, match="not the file of a simulated run"):
        Case.from_json(text)


def test_a_file_of_another_version_is_refused():
    text = json.dumps({**json.loads(CASE.to_json()), "case": 2})
    with pytest.raises(UsageError, match="another version"):
        Case.from_json(text)


def test_the_command_repeats_every_detail():
    words = shlex.split(replace(CASE, faults="kill slot=1 at=800ms").command())
    assert words[:2] == ["snapline", "simulate"]
    assert dict(zip(words[2::2], words[3::2], strict=True)) == {
        "--protocol": "unaligned",
        "--workload": "q3",
        "--seed": "7",
        "--slots": "4",
        "--records": "9",
        "--guarantee": "at-most-once",
        "--faults": "kill slot=1 at=800ms",
    }


# Shrinking.


@pytest.fixture
def no_blocking(monkeypatch):
    """Break alignment: an input is read on behind its marker."""
    original = AlignedTask.__init__

    def without_blocking(task, context):
        original(task, context)
        task.blocking = False

    monkeypatch.setattr(AlignedTask, "__init__", without_blocking)


def first_failing(seeds):
    cases = (Case("aligned", "counting", seed) for seed in seeds)
    return next(case for case in cases if simulate(case).violation)


def test_a_failing_case_becomes_smaller_and_breaks_the_same_invariant(no_blocking):
    case = first_failing(range(20))
    small = shrink_case(case, budget=60)
    before, after = simulate(case), simulate(small)
    assert after.violation is not None
    assert after.violation.name == before.violation.name
    assert small.faults is not None
    assert len(parse(small.faults)) <= len(parse(before.faults))
    assert (small.slots, small.records) < (case.slots, case.records)
    assert small.seed == case.seed


def test_a_smaller_case_that_means_nothing_is_no_case(monkeypatch):
    """An executor is named by a slot, which a smaller case may not have."""
    case = Case("aligned", "counting", 1, slots=3, faults="kill executor=2 at=900ms")

    def broken_if_somebody_dies(attempt):
        violation = Violation("planted", "an executor dies") if attempt.faults else None
        return replace(simulate(attempt), violation=violation)

    monkeypatch.setattr(explore, "simulate", broken_if_somebody_dies)
    small = shrink_case(case, budget=60)
    assert (small.slots, small.records) == (3, 1)
    assert small.faults.startswith("kill executor=2")


def test_a_budget_of_nothing_only_writes_the_faults_down(no_blocking):
    case = first_failing(range(20))
    assert shrink_case(case, budget=0) == replace(case, faults=simulate(case).faults)


def test_the_bug_is_the_one_that_was_planted():
    assert not any(simulate(Case("aligned", "counting", seed)).violation for seed in range(20))


# Sweeps.


@pytest.mark.parametrize("jobs", [1, 2])
def test_outcomes_come_in_the_order_of_the_cases(jobs):
    cases = [Case("none", "q1", seed, records=3, faults="") for seed in range(5)]
    seen: list[Outcome] = []
    outcomes = sweep(cases, jobs, seen.append)
    assert [outcome.case for outcome in outcomes] == cases
    assert seen == outcomes


def run(protocol="aligned", workload="counting", *, crashed=True, commits=3, **stats):
    case = Case(protocol, workload, 1)
    return Outcome(case, stats={"commits": commits, **stats}, crashed_after_commit=crashed)


def everywhere(protocol, seen):
    """A run on every workload that a protocol can run; what was seen in the first of them."""
    able = [workload for workload in WORKLOADS if can_run(protocol, workload)]
    return [run(protocol, w, **(seen if w == able[0] else {})) for w in able]


def eventful(protocol):
    """All that must be seen under a protocol."""
    return dict.fromkeys((*ALWAYS_SHOWN, *PROTOCOLS[protocol].shows), 1)


WITH_CHECKPOINTS = [name for name, protocol in PROTOCOLS.items() if not protocol.publishes_at_once]


@pytest.mark.parametrize("protocol", WITH_CHECKPOINTS)
def test_a_sweep_in_which_everything_occurred_once_proves_something(protocol):
    assert vacuous(everywhere(protocol, eventful(protocol))) == []


@pytest.mark.parametrize("protocol", WITH_CHECKPOINTS)
def test_what_never_happened_is_named(protocol):
    for event in eventful(protocol):
        tame = {**eventful(protocol), event: 0}
        assert vacuous(everywhere(protocol, tame)) == [
            f"under {protocol} this never happened: {event}"
        ]


def test_one_workload_alone_need_not_show_everything():
    assert vacuous([run("aligned", "counting")]) == []


def test_a_cell_whose_runs_seldom_crash_after_a_commit_proves_nothing():
    runs = [run(crashed=seed < 5) for seed in range(10)]
    assert vacuous(runs) == ["aligned on counting: only 50% of the runs crash after a commit"]


def test_a_cell_whose_median_run_hardly_commits_proves_nothing():
    runs = [run(commits=commits) for commits in (1, 2, 9)]
    assert vacuous(runs) == ["aligned on counting: the median run commits only 2 lines"]


def test_refused_runs_and_protocols_without_checkpoints_are_not_asked():
    refused = Outcome(Case("aligned", "nhop", 1), refused="it has a cycle")
    assert vacuous([refused, run("none", crashed=False, commits=0)]) == []


def test_a_tame_sweep_is_found_out():
    able = [workload for workload in WORKLOADS if can_run("aligned", workload)]
    cases = [Case("aligned", workload, 1, records=3, faults="") for workload in able]
    sentences = vacuous(sweep(cases, 1, lambda _: None))
    assert "under aligned this never happened: rollbacks" in sentences
    assert "aligned on counting: only 0% of the runs crash after a commit" in sentences


# Processes of a sweep.


def _handlers(case):
    return [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]


def test_the_processes_of_a_sweep_end_by_sigterm_whatever_it_means_to_their_parent(monkeypatch):
    """Left to a handler of the parent, the signal is lost if it comes just before a process waits."""
    monkeypatch.setattr(explore, "simulate", _handlers)
    before = signal.signal(signal.SIGTERM, lambda *_: os._exit(1))
    try:
        found: list[Any] = list(sweep([CASE, CASE], 2, lambda outcome: None))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert found == [[signal.SIG_IGN, signal.SIG_DFL]] * 2
