"""PGVal's topologies under faults: events really are late, rollbacks do not disturb them, none is lost."""

import re
from dataclasses import replace

import pytest
from sim_runs import kept

from snapline.dataflow.deploy import deploy as deploy_flow
from snapline.dataflow.operators.window import Tumbling
from snapline.sim import run
from snapline.sim.case import Case
from snapline.sim.run import simulate
from snapline.workload import WORKLOADS
from snapline.workload.lineage import queries
from snapline.workload.lineage.model import event_label, lineage_of

TOPOLOGIES = ("sst", "mst")
KILLS = "kill slot=1 at=900ms; kill slot=0 at=1700ms"


@pytest.fixture
def outputs(monkeypatch):
    """The public output of each run, in their order."""
    seen = []
    for name in TOPOLOGIES:
        workload = WORKLOADS[name]

        def judge(params, output, state, level, workload=workload):
            seen.append(output)
            return workload.judge(params, output, state, level)

        monkeypatch.setitem(WORKLOADS.own, name, replace(workload, judge=judge))
    return seen


def ids_of(output):
    """The ids of each sink."""
    lists = [name for name in output["counts"].columns if name.endswith("ids")]
    counted = [i for name in lists for i in output["counts"][name].compact().values.tolist()]
    return counted, output["late"]["id"].tolist()


@pytest.mark.parametrize("workload", TOPOLOGIES)
def test_events_are_late_in_most_runs_and_rollbacks_happen_around_them(workload, outputs):
    cases = [Case("aligned", workload, seed, records=40) for seed in range(1, 9)]
    runs = [kept(case) for case in cases]
    late = [len(output["late"]) for output in outputs]
    assert sum(count > 0 for count in late) >= 6
    around = [c for c, r in zip(late, runs, strict=True) if r.stats["rollbacks"] and c]
    assert len(around) >= 5


@pytest.mark.parametrize("workload", TOPOLOGIES)
@pytest.mark.parametrize("protocol", ["aligned", "uncoordinated"])
def test_every_event_is_counted_once_or_late_once_through_two_rollbacks(
    protocol, workload, outputs
):
    """Counted here, without the judge: late events before the first rollback, and after the last."""
    case = Case(protocol, workload, 4, faults=KILLS)
    assert kept(case).stats["rollbacks"] == 2
    events = lineage_of(case.params, with_posts=workload == "mst")
    (output,) = outputs
    counted, late = ids_of(output)
    assert sorted(counted + late) == sorted(events["id"].tolist())
    arrivals = dict(zip(events["id"].tolist(), events["arrival"].tolist(), strict=True))
    when = sorted(arrivals[event] for event in late)
    assert when[0] < 900
    assert when[-1] > 1_700


def test_under_patience_nothing_is_late(outputs):
    settings = (("bound", 300),)
    kept(Case("aligned", "mst", 2, records=24, settings=settings))
    assert len(outputs[0]["late"]) == 0


@pytest.mark.parametrize("workload", TOPOLOGIES)
def test_without_a_protocol_a_kill_loses_events_and_the_judge_names_one(workload):
    outcome = kept(Case("none", workload, 3, faults="kill slot=1 at=900ms"))
    lost = [problem for problem in outcome.problems if problem.startswith("missing ")]
    found = re.match(r"missing ((GET|POST) \d:\d+): (\1) \(id (\d+)\) is lost: ", lost[0])
    assert found is not None, lost[0]
    assert event_label(int(found[4])) == found[1]


@pytest.mark.parametrize(
    ("protocol", "level"),
    [("uncoordinated", "at-least-once"), ("hmnr", "at-most-once"), ("aligned", "at-least-once")],
)
def test_a_weaker_level_is_kept(protocol, level):
    for seed in (11, 12, 13):
        kept(Case(protocol, "mst", seed, records=24, guarantee=level))


@pytest.fixture
def overdue(monkeypatch):
    """How many rows of the join came too late for the next operator, time after time."""
    parted, rows = queries.parted, []

    def seen(joined):
        rows.append(joined.length)
        return parted(joined)

    monkeypatch.setattr(queries, "parted", seen)
    return rows


def test_a_row_of_the_join_that_comes_too_late_hands_its_events_on(overdue):
    """At least once a join may repeat a window that the next operator has closed."""
    for seed in range(1, 20):
        kept(Case("uncoordinated", "mst", seed, records=40, guarantee="at-least-once"))
        if overdue:
            return
    pytest.fail("in no run a row of the join came too late")


@pytest.mark.parametrize("protocol", ["unaligned", "uncoordinated"])
def test_exactly_once_no_row_of_the_join_comes_too_late(protocol, overdue):
    for seed in (1, 2, 3):
        kept(Case(protocol, "mst", seed, records=30, settings=(("lateness", 100),)))
    assert overdue == []


def test_a_join_that_is_followed_by_a_hastier_window_makes_everything_late(monkeypatch, outputs):
    """Why the second window waits as long as the first."""
    monkeypatch.setattr(queries, "Tumbling", lambda size, lateness_ms: Tumbling(size))
    outcome = simulate(
        Case("aligned", "mst", 2, records=24, faults="", settings=(("lateness", 200),))
    )
    counted, late = ids_of(outputs[0])
    assert len(late) > len(counted)
    # Nothing is lost, but the judge knows how far the watermark can have been.
    assert outcome.violation.name == "output_is_exactly-once"
    assert "but it was in time: when it came, no watermark can have been" in outcome.violation.story


@pytest.mark.parametrize("workload", TOPOLOGIES)
@pytest.mark.parametrize("protocol", ["aligned", "unaligned", "hmnr"])
def test_deployed_lean_as_in_real_runs(protocol, workload, monkeypatch):
    names = set()

    def deploy(flow, slots, lean, pools):  # what the case says of it does not count here
        deployment = deploy_flow(flow, slots, lean=True, pools=pools)
        names.update(task.rpartition("/")[0] for task in deployment.topology.tasks)
        return deployment

    monkeypatch.setattr(run, "deploy", deploy)
    kept(Case(protocol, workload, 1, records=120))
    chained = {"sst": {"gets", "count"}, "mst": {"gets", "posts", "join", "count"}}
    assert names == chained[workload] | {"counts", "late"}
