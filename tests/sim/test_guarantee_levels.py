"""Each protocol at each weaker level that it offers: what is promised holds, and no more is given.

Exactly once, the first level of all of them, is the business of the sweep over every workload, and bounded
loss, which depends on what was declared, of `test_bounded_loss.py`.
"""

from dataclasses import replace

import pytest
from sim_runs import can_run, kept

from snapline.core.guarantee import Guarantee
from snapline.protocols import PROTOCOLS
from snapline.sim.case import Case
from snapline.sim.run import simulate
from snapline.workload import WORKLOADS

LEVELS = [
    (name, level.value)
    for name, protocol in PROTOCOLS.items()
    for level in protocol.guarantees
    if level not in (Guarantee.EXACTLY_ONCE, Guarantee.NOTHING, Guarantee.BOUNDED_LOSS)
]
GRAPHS = ("counting", "q3", "nhop", "reachability")
CELLS = [(name, level, graph) for name, level in LEVELS for graph in GRAPHS if can_run(name, graph)]


def test_every_protocol_with_lines_promises_exactly_once_unless_told_otherwise():
    defaults = {name: protocol.guarantees[0] for name, protocol in PROTOCOLS.items()}
    assert defaults.pop("none") is Guarantee.NOTHING
    assert defaults.pop("partial") is Guarantee.BOUNDED_LOSS
    assert set(defaults.values()) == {Guarantee.EXACTLY_ONCE}


@pytest.mark.parametrize(("protocol", "level", "workload"), CELLS)
def test_a_level_is_kept_whatever_fails(protocol, level, workload):
    for seed in (11, 12, 13, 14):
        kept(Case(protocol, workload, seed, records=24, guarantee=level))


@pytest.mark.parametrize(("protocol", "level"), LEVELS)
def test_a_weaker_level_really_is_weaker(protocol, level, monkeypatch):
    """Judged as if it were exactly once, at least once repeats a record, and at most once loses one."""
    workload = "nhop" if PROTOCOLS[protocol].cycles else "q3"
    strict = WORKLOADS[workload].judge
    judged_strictly = replace(
        WORKLOADS[workload],
        judge=lambda params, out, state, _: strict(params, out, state, Guarantee.EXACTLY_ONCE),
    )
    monkeypatch.setitem(WORKLOADS.own, workload, judged_strictly)
    expected = "duplicate" if level == "at-least-once" else "missing"
    for seed in range(60):
        violation = simulate(Case(protocol, workload, seed, guarantee=level)).violation
        if violation is not None and violation.name == f"output_is_{level}":
            assert violation.story.startswith(expected)
            return
    pytest.fail(f"in 60 runs there was no record of which to say: {expected}")


@pytest.mark.parametrize(
    ("protocol", "workload", "seed"),
    [
        ("uncoordinated", "counting", 23),
        ("uncoordinated", "counting", 34),
        ("uncoordinated", "nhop", 4),
        ("bcs", "counting", 15),
        ("bcs", "counting", 29),
        ("hmnr", "nhop", 48),
        ("hmnr", "nhop", 58),
    ],
)
def test_at_least_once_survives_one_rollback_after_another(protocol, workload, seed):
    """A receiver that was set back stands there from then on: for the next line, and for the logs."""
    kept(Case(protocol, workload, seed, records=24, guarantee="at-least-once"))
