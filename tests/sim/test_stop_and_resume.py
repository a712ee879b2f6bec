"""A run stops with a last line, at any moment and amid failures; resumed, it keeps its promise.

While it stops, the invariant `line_holds_everything` compares the line with what the tasks have done.
"""

from random import Random

import pytest
from sim_runs import FRESH, can_run

from snapline.core.guarantee import Guarantee
from snapline.engine.coordinator import coordinator, quiet
from snapline.engine.coordinator.holding import SourceHold
from snapline.protocols import PROTOCOLS
from snapline.sim.case import DURATION_MS, Case
from snapline.sim.run import Outcome, simulate

SEEDS = (1, 2, FRESH)
WORKLOADS = ("q3", "q12", "reachability")
PAIRS = [(p, w) for p in PROTOCOLS for w in WORKLOADS if can_run(p, w)]


def stopped(protocol: str, workload: str, seed: int, **given: str) -> tuple[Outcome, str]:
    """A run that is stopped two times, and a text that repeats it; slots die while it stops."""
    rng = Random(f"{seed}:{protocol}:{workload}")
    stops = sorted(rng.randrange(100, DURATION_MS) for _ in range(2))
    kills = [f"kill slot={rng.randrange(3)} at={at + rng.randrange(1, 60)}ms" for at in stops]
    faults = ("", "; ".join(kills), None)[seed % 3]  # none, these, or whatever the seed draws
    if PROTOCOLS[protocol].publishes_at_once:  # a run without lines loses what it did not save
        given = {"guarantee": "nothing", **given}
    case = Case(protocol, workload, seed, faults=faults, **given)
    outcome = simulate(case, stops_ms=stops)
    broken = outcome.violation
    story = "" if broken is None else f"{broken.name}: {broken.story}\n"
    return outcome, f"{story}repeat with: simulate({case!r}, stops_ms={stops})"


@pytest.mark.parametrize(("protocol", "workload"), PAIRS)
def test_a_run_that_stops_and_is_resumed_keeps_its_promise(protocol, workload):
    stops = kills = 0
    for seed in SEEDS:
        outcome, told = stopped(protocol, workload, seed)
        assert outcome.violation is None, told
        stops += outcome.stats.get("stopped", 0)
        kills += outcome.stats.get("crashes", 0)
    assert stops >= len(SEEDS)
    assert (
        kills or PROTOCOLS[protocol].publishes_at_once
    )  # without lines it stops before a kill strikes


@pytest.mark.parametrize("guarantee", [Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE])
def test_a_weaker_promise_is_kept_through_a_stop_as_well(guarantee):
    for seed in SEEDS:
        outcome, told = stopped("uncoordinated", "q12", seed, guarantee=guarantee.value)
        assert outcome.violation is None, told


# Broken on purpose.


def first_broken(protocol: str = "aligned", workload: str = "q3") -> str:
    """The name of the invariant that the first broken run breaks."""
    for seed in range(12):
        outcome, _ = stopped(protocol, workload, seed)
        if outcome.violation is not None:
            return outcome.violation.name
    return ""


def test_a_stop_before_a_line_covers_all_is_caught(monkeypatch):
    monkeypatch.setattr(coordinator, "covers", lambda *_: True)
    assert first_broken() == "line_holds_everything"


def test_a_stop_that_believes_one_wave_is_caught(monkeypatch):
    def hasty(self, *, held=False):
        real(self, held=held)
        return held or self.all_read

    real = quiet.QuietDetector.is_quiet
    monkeypatch.setattr(quiet.QuietDetector, "is_quiet", hasty)
    assert first_broken() in ("line_holds_everything", "run_ends_by_itself")


def test_sources_that_go_on_during_a_stop_are_caught(monkeypatch):
    monkeypatch.setattr(
        SourceHold, "tell", property(lambda self: lambda hold: None, lambda *_: None)
    )
    assert first_broken() in ("line_holds_everything", "run_ends_by_itself")
