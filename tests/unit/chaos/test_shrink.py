"""Shrinking: still failing, as small as the budget allows, and never an endless search."""

from hypothesis import given
from hypothesis import strategies as st

from snapline.chaos.faults import KINDS, Cut, Kill, StoreSlow, describe, parse
from snapline.chaos.plan import draw
from snapline.chaos.shrink import shrink, smaller_faults
from snapline.chaos.targets import slots_of


def test_the_first_smaller_candidate_that_fails_is_taken():
    tried = []

    def fails(n):
        tried.append(n)
        return n % 5 == 0

    assert shrink(20, lambda n: iter(range(n - 1, 0, -1)), fails, budget=100) == 5
    assert tried == [19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]


def test_the_budget_bounds_the_attempts():
    for budget in range(6):
        tried = []
        found = shrink(
            100,
            lambda n: iter([n - 1]) if n else iter([]),
            lambda n: tried.append(n) is None,  # noqa: B023  (called before the next loop)
            budget,
        )
        assert (found, len(tried)) == (100 - budget, budget)


def test_a_plan_shrinks_to_the_fault_that_matters():
    plan = parse("kill slot=0 at=1s; cut slot=1 from=2 at=1s for=800ms; damage slot=1 at=2s")
    guilty = shrink(plan, smaller_faults, lambda p: any(isinstance(f, Cut) for f in p), 100)
    assert describe(guilty) == "cut slot=1 from=2 at=1s for=1ms"


def test_a_kill_of_many_shrinks_to_those_that_matter():
    plan = parse("kill slot=0,1,2,3 on=round; kill slot=2 step=100")

    def fails(plan):
        return any(isinstance(f, Kill) and {1, 3} <= set(f.slots) for f in plan) and any(
            isinstance(f, Kill) and getattr(f.when, "n", 0) >= 20 for f in plan
        )

    assert describe(shrink(plan, smaller_faults, fails, 100)) == (
        "kill slot=1,3 on=round; kill slot=2 step=25"
    )


def test_a_partition_shrinks_to_the_two_that_matter():
    plan = parse("cut slot=0,1 from=2,3,coordinator at=1s for=8ms")

    def fails(plan):
        return any(1 in slots_of(f) and 3 in slots_of(f) for f in plan)

    assert describe(shrink(plan, smaller_faults, fails, 100)) == "cut slot=1 from=3 at=1s for=1ms"


def test_delays_and_durations_are_halved_apart():
    plan = parse("store slow 64ms at=1s for=64ms")

    def fails(plan):
        return any(isinstance(f, StoreSlow) and f.delay_ms >= 10 and f.for_ms >= 3 for f in plan)

    assert describe(shrink(plan, smaller_faults, fails, 100)) == "store slow 16ms at=1s for=4ms"


@given(st.integers(0, 10_000))
def test_every_plan_shrinks_to_nothing_when_everything_fails(seed):
    plan = draw(seed, 4, 5_000, kinds=KINDS)
    assert shrink(plan, smaller_faults, lambda plan: True, 1_000) == ()


@given(st.integers(0, 10_000))
def test_smaller_plans_are_plans_and_other_plans(seed):
    plan = draw(seed, 4, 5_000, kinds=KINDS)
    candidates = list(smaller_faults(plan))
    assert plan not in candidates
    for candidate in candidates:
        assert parse(describe(candidate)) == candidate
