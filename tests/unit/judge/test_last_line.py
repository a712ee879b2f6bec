"""A line is judged only if all that it has put out is public, and nobody has gone on from it."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from snapline.core.messages import RecoveryLine
from snapline.engine.coordinator.ledger import Decision, Held
from snapline.errors import RunDamaged, UsageError
from snapline.judge.prefix import last_line
from snapline.judge.prefix.cut import NoCut
from snapline.rundir.program import build_job, find_program
from snapline.rundir.spec import Spec

SPEC = Spec("q1", slots=1, rate=100, duration_ms=1_000)
PROGRAM = find_program(SPEC)
JOB = build_job(SPEC, PROGRAM)
CHAINS = dict.fromkeys(JOB.topology.tasks, ())
LAST = Decision(7, "a", JOB.deployment.fingerprint, 1, {}, True, CHAINS, b"", (), 3)


@pytest.fixture
def cut(monkeypatch):
    """What is found out of a run whose last decision is this one, and of which so much is public."""

    def found(past, *, public=3, number=7):
        def read_past(directory, job):
            if isinstance(past, Exception):
                raise past
            return past

        monkeypatch.setattr(last_line, "read_past", read_past)
        outlet = SimpleNamespace(last_published=lambda: public)
        directory = SimpleNamespace(name="a-run", outlet=outlet)
        return last_line.cut_of(directory, SPEC, PROGRAM, number)

    return found


def test_a_line_of_which_all_is_public_is_judged(cut):
    assert cut(LAST).offsets == {"bids": (0,)}


def test_output_that_is_decided_and_not_public_makes_it_unknown(cut):
    with pytest.raises(NoCut, match="a resume publishes the rest"):
        cut(LAST, public=2)
    with pytest.raises(NoCut, match="a resume publishes the rest"):
        cut(replace(LAST, held=(Held(RecoveryLine({}), {}),)))


def test_a_run_that_has_gone_on_is_refused_and_a_damaged_one_unknown(cut):
    with pytest.raises(UsageError, match="was resumed while it was judged"):
        cut(LAST, number=6)
    with pytest.raises(NoCut, match="decision 3 is gone"):
        cut(RunDamaged("decision 3 is gone"))
