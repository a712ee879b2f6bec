"""Each protocol at each level that it offers: what is promised holds, and no more than that is given."""

from dataclasses import replace

import pytest
from sim_runs import can_run, kept

from snapline.core.policy import Guarantee
from snapline.protocols import PROTOCOLS
from snapline.sim.run import Case, simulate
from snapline.workload import WORKLOADS

LEVELS = [
    (name, level.value)
    for name, protocol in PROTOCOLS.items()
    for level in protocol.guarantees
    if level is not Guarantee.NOTHING
]
WEAKER = [(name, level) for name, level in LEVELS if level != Guarantee.EXACTLY_ONCE.value]
GRAPHS = ("counting", "q3", "nhop", "reachability")


@pytest.mark.parametrize("workload", GRAPHS)
@pytest.mark.parametrize(("protocol", "level"), LEVELS)
def test_a_level_is_kept_whatever_fails(protocol, level, workload):
    if can_run(protocol, workload):
        for seed in (11, 12, 13):
            kept(Case(protocol, workload, seed, records=24, guarantee=level))


@pytest.mark.parametrize(("protocol", "level"), WEAKER)
def test_a_weaker_level_really_is_weaker(protocol, level, monkeypatch):
    """Judged by exactly once, at least once repeats some record, and at most once loses some."""
    workload = "reachability" if level == "at-most-once" and protocol == "aligned-cyclic" else "q12"
    strict = WORKLOADS[workload].judge
    lenient = replace(
        WORKLOADS[workload],
        judge=lambda params, out, state, _: strict(params, out, state, Guarantee.EXACTLY_ONCE),
    )
    monkeypatch.setitem(WORKLOADS, workload, lenient)
    expected = "duplicate" if level == "at-least-once" else "missing"
    for seed in range(60):
        violation = simulate(Case(protocol, workload, seed, records=60, guarantee=level)).violation
        if violation is not None:
            assert violation.name == f"output_is_{level}"
            if violation.story.startswith(expected):
                return
    pytest.fail(f"in 60 runs no record was found to be a case of {expected}")
