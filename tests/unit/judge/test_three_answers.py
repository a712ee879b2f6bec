"""One promise decides, and every guarantee is answered."""

import pytest

from snapline.core.guarantee import Guarantee
from snapline.dataflow.deploy import deploy
from snapline.judge.verdict import UNKNOWN, Verdict, verdict_of
from snapline.rundir.program import find_program
from snapline.rundir.spec import Spec
from snapline.workload import WORKLOADS
from snapline.workload.oracles.verdict import Problems

MOST, LEAST, EXACTLY = "at-most-once", "at-least-once", "exactly-once"


def oracle(*, lack=False, excess=False, wrong=False):
    def judged(level):
        findings = Problems(level)
        if lack:
            findings.lack("missing", "record 1", "it is not there")
        if excess:
            findings.excess("duplicate", "record 2", "it came out twice")
        if wrong:
            findings.instead("record 3", "it came out as 4; right is 5")
        return findings.problems

    return judged


@pytest.mark.parametrize(
    ("found", "answers"),
    [
        ({}, ("yes", "yes", "yes")),
        ({"lack": True}, ("yes", "no", "no")),
        ({"excess": True}, ("no", "yes", "no")),
        ({"lack": True, "excess": True}, ("no", "no", "no")),
        ({"wrong": True}, ("no", "no", "no")),
    ],
)
def test_every_guarantee_has_its_answer(found, answers):
    verdict = verdict_of(oracle(**found), Guarantee.EXACTLY_ONCE, "all right")
    assert verdict.guarantees == dict(zip((MOST, LEAST, EXACTLY), answers, strict=True))
    assert verdict.kept == verdict.guarantees[EXACTLY]


def test_only_the_promise_decides():
    verdict = verdict_of(oracle(excess=True), Guarantee.AT_LEAST_ONCE, "all right")
    assert (verdict.kept, verdict.because) == ("yes", "all right")
    assert verdict.guarantees[EXACTLY] == "no"
    assert not verdict.problems


def test_where_nothing_was_promised_whatever_is_wrong_is_said():
    verdict = verdict_of(oracle(lack=True), Guarantee.NOTHING, "all right")
    assert verdict.kept == "no"
    assert verdict.because.startswith("nothing was promised, and the output is wrong: missing")


def test_an_oracle_is_asked_once_if_nothing_is_wrong():
    asked = []

    def judged(level):
        asked.append(level)
        return ()

    verdict_of(judged, Guarantee.EXACTLY_ONCE, "all right")
    assert asked == [Guarantee.EXACTLY_ONCE]


def test_without_a_judge_nothing_is_known():
    assert Verdict("unknown", "interrupted").guarantees == UNKNOWN


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_judge_reads_the_sinks_that_the_slots_wrote_to(workload, fused):
    program = find_program(Spec(workload, slots=3, size="small", duration_ms=1_000))
    assert program.sinks(3) == deploy(program.flow, 3, lean=fused).sinks
