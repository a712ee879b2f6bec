"""Every deliberate bug is caught, by the invariant that is meant for it, and only because of the bug.

The seeds are tried in order. Those up to the one that catches the bug must pass without it: otherwise it
would be the run that is broken, and not the bug that is caught.
"""

from functools import cache

import group_sabotage  # noqa: F401  (enters its bugs)
import partial_sabotage  # noqa: F401  (enters its bugs)
import pytest
from sabotage import BUGS, ORACLE, Bug

from snapline.sim.case import Case
from snapline.sim.run import Outcome, Violation, simulate

SEEDS = 300
BUGS_MIN = 20
INVARIANTS_MIN = 8
GUARDS = ("ProtocolViolation", "StorageError")
"""What the product itself raises: good to have, but no proof that the monitor would have noticed."""


@cache
def violation_without_bug(case: Case) -> Violation | None:
    """Many bugs share their cases; each is run once. Never to be called while a bug is patched in."""
    return simulate(case).violation


def first_caught(bug: Bug) -> Outcome | None:
    outcomes = (simulate(bug.case(seed)) for seed in range(SEEDS))
    return next((outcome for outcome in outcomes if outcome.violation), None)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_is_caught_and_its_seeds_pass_without_it(bug, monkeypatch):
    with monkeypatch.context() as patch:
        bug.apply(patch)
        caught = first_caught(bug)
    assert caught is not None, f"{SEEDS} seeds and nothing was noticed: an invariant is missing"
    assert caught.violation.name in bug.caught_by, caught.violation.story
    for seed in range(caught.case.seed + 1):
        assert violation_without_bug(bug.case(seed)) is None


def test_enough_bugs_are_caught_by_enough_different_invariants():
    assert len(BUGS) >= BUGS_MIN
    assert len({bug.name for bug in BUGS}) == len(BUGS)
    certain = {bug.caught_by[0] for bug in BUGS if len(bug.caught_by) == 1}
    assert len(certain - {ORACLE, *GUARDS}) >= INVARIANTS_MIN
