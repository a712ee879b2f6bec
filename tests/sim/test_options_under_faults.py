"""Options that change when and how tasks are saved, under faults: whatever they are, the promise is kept.

The uncoordinated family chooses when to checkpoint: by records, at the end of windows, at intervals of each
operator's own. Where a test wants to see one of these alone, no timer of any operator ever fires.
"""

import random
from collections import Counter

import pytest
from sim_runs import TROUBLE, kept

from journal_feeder import Feeder
from snapline.core.effects import Snapshot
from snapline.core.events import Progressed, TimerFired
from snapline.dataflow.deploy import deploy
from snapline.dataflow.operators.operator import Operator
from snapline.engine.options import read_options
from snapline.ids import operator_of
from snapline.journal.entry import Handled
from snapline.protocols import PROTOCOLS
from snapline.sim.case import Case
from snapline.sim.run import build_job, simulate
from snapline.sim.world.costs import Costs
from snapline.storage import codec
from snapline.workload import WORKLOADS

FAMILY = ("uncoordinated", "hmnr", "bcs")
KILLS = "kill slot=1 at=700ms; kill slot=0 at=1300ms; kill slot=2 on=recovery"


def many(*workloads):
    """Every protocol of the family on these, with ten seeds each: for those who have the time."""
    return [
        pytest.param(protocol, workload, range(1, 11), marks=pytest.mark.slow)
        for protocol in FAMILY
        for workload in workloads
    ]


def deployment(workload, *, fused=False):
    flow = WORKLOADS[workload].build(Case("none", workload, 1).params)
    return deploy(flow, 3, lean=fused)


def no_timers(workload, *, fused=False):
    return {f"interval.{name}": "24h" for name in deployment(workload, fused=fused).operators}


def cases(protocol, workload, given, seeds=()):
    """The same run with a crash, a zombie and a resume; with kills; and with the faults of each seed."""
    options = read_options(given)
    yield Case(protocol, workload, 1, records=20, faults=TROUBLE, options=options)
    yield Case(protocol, workload, 2, records=20, faults=KILLS, options=options)
    yield from (Case(protocol, workload, seed, records=40, options=options) for seed in seeds)


def taken_at(outcome, kind):
    """How many checkpoints the tasks of each operator took when they were told of such an event."""
    handled = (e for e in outcome.journal if isinstance(e, Handled) and isinstance(e.event, kind))
    return Counter(
        operator_of(entry.actor)
        for entry in handled
        for effect in entry.effects
        if isinstance(effect, Snapshot)
    )


# When tasks checkpoint.


@pytest.mark.parametrize(
    ("protocol", "workload", "seeds"),
    [
        ("uncoordinated", "reachability", ()),
        ("hmnr", "counting", ()),
        ("bcs", "q3", ()),
        *many("counting", "q3", "q12", "nhop", "reachability"),
    ],
)
def test_checkpoints_by_count_keep_every_promise(protocol, workload, seeds):
    given = {"every_records": 10, **no_timers(workload)}
    commits = crashes = 0
    for case in cases(protocol, workload, given, seeds):
        outcome = kept(case, journal=True)
        taken = taken_at(outcome, Progressed)
        sources = {name.rpartition("/")[0] for name in outcome.topology.sources}
        assert sources & set(taken), "sources count what they read"
        assert set(taken) - sources, "and others what they take"
        assert not taken_at(outcome, TimerFired)
        commits += outcome.stats["commits"]
        crashes += outcome.stats["crashes"]
    assert commits > 4
    assert crashes > 2


@pytest.mark.parametrize(
    ("protocol", "workload", "seeds"),
    [
        ("uncoordinated", "sst", ()),
        ("hmnr", "q12", ()),
        ("bcs", "q8", ()),
        *many("q8", "q12", "sst", "mst"),
    ],
)
def test_checkpoints_at_the_end_of_windows_keep_every_promise(protocol, workload, seeds):
    plans = deployment(workload).plans.values()
    windowed = {
        operator_of(plan.task)
        for plan in plans
        if type(plan.operator()).windows_closed is not Operator.windows_closed
    }
    assert windowed
    seen = Counter()
    for case in cases(protocol, workload, {"at_window_close": "yes"}, seeds):
        outcome = kept(case, journal=True)
        seen += taken_at(outcome, Progressed)
        assert taken_at(outcome, TimerFired), "the interval is an upper bound"
    assert set(seen) == windowed


@pytest.mark.parametrize("protocol", FAMILY)
def test_a_chain_says_that_one_of_its_operators_has_closed_a_window(protocol):
    given = {"at_window_close": "yes", "fused": "yes", **no_timers("q12", fused=True)}
    [case, *_] = cases(protocol, "q12", given)
    outcome = kept(case, journal=True)
    assert taken_at(outcome, Progressed)
    assert not taken_at(outcome, TimerFired)


@pytest.mark.parametrize("protocol", FAMILY)
def test_messages_that_are_taken_together_count_all_of_their_records(protocol, monkeypatch):
    monkeypatch.setattr("snapline.sim.world.process.SimSlotProcess.gathers", True)
    given = {"every_records": 10, **no_timers("q12")}
    for case in cases(protocol, "q12", given):
        assert taken_at(kept(case, journal=True), Progressed)
    case = Case(protocol, "q12", 1, records=150, faults="", options=read_options(given))
    told = Counter()
    for entry in kept(case, journal=True).journal:
        if isinstance(entry, Handled) and isinstance(entry.event, Progressed):
            told[operator_of(entry.actor)] += entry.event.records
    assert told["bids"] == told["count"] == 3 * case.records


@pytest.mark.parametrize("protocol", FAMILY)
def test_an_operator_with_an_interval_of_its_own_checkpoints_at_that(protocol):
    for case in cases(protocol, "q12", {**no_timers("q12"), "interval.count": "30ms"}):
        outcome = kept(case, journal=True)
        assert set(taken_at(outcome, TimerFired)) == {"count"}
    [case, _] = cases(protocol, "q12", {"interval.count": "30ms"})
    taken = taken_at(kept(case, journal=True), TimerFired)
    others = [n for name, n in taken.items() if name != "count"]
    assert taken["count"] > max(others) > 0


def test_an_interval_for_an_operator_that_is_not_there_is_refused_with_those_that_are():
    case = Case("uncoordinated", "q12", 1, options=(("interval.cuont", 30),))
    refused = simulate(case).refused
    assert refused.startswith(
        "interval.cuont is the interval of no task: the tasks of this run are those"
    )
    assert " bids, " in refused
    assert "count" in refused.replace("cuont", "")
    at_close = Case("uncoordinated", "counting", 1, options=(("at_window_close", 1),))
    assert "is for dataflows with windows" in simulate(at_close).refused


@pytest.mark.parametrize("protocol", FAMILY)
def test_a_journal_with_progress_can_be_fed_back(protocol):
    given = {"every_records": 10, "at_window_close": "yes", "interval.count": "60ms"}
    for case in cases(protocol, "q12", given):
        rng = random.Random(f"{case.seed}:world")
        Costs.draw(rng)
        fed = Feeder(build_job(case, PROTOCOLS[protocol], rng))
        assert list(fed.feed(kept(case, journal=True).journal)) == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_nobody_is_told_of_progress_who_does_not_want_to_know(protocol):
    outcome = kept(Case(protocol, "q12", 1, records=20, faults=""), journal=True)
    told = [
        e for e in outcome.journal if isinstance(e, Handled) and isinstance(e.event, Progressed)
    ]
    assert told == []


def test_a_sweep_draws_these_times_for_some_of_its_seeds():
    drawn = []
    for seed in range(8):
        case = Case("bcs", "q12", seed, records=20)
        options = build_job(case, PROTOCOLS["bcs"], random.Random(1)).options
        drawn.append((options.every_records > 0, options.at_window_close))
    assert drawn.count((True, False)) == drawn.count((False, True)) == 1


# Compressed snapshots.


@pytest.mark.parametrize(
    ("protocol", "workload"),
    [("aligned-cyclic", "reachability"), ("unaligned", "q12"), ("uncoordinated", "q12")],
)
def test_compressed_snapshots_restore_what_was_saved(protocol, workload, monkeypatch):
    """Full ones and deltas, with memos and recorded messages; damage to one is noticed."""
    used = Counter()

    def counting(name):
        function = getattr(codec, name)

        def call(*given):
            used[name] += 1
            return function(*given)

        monkeypatch.setattr(codec, name, call)

    counting("pack")
    counting("unpack")
    damage = "damage slot=0 at=1200ms; kill slot=1 at=1201ms"
    for case in cases(protocol, workload, {"compress": "yes"}):
        kept(case)
    simulated = simulate(
        Case(protocol, workload, 3, faults=damage, options=read_options({"compress": "yes"}))
    )
    assert simulated.violation is None
    assert used["pack"] > 10
    assert used["unpack"] > 10
