"""Which protocol and interval fit: the formulas by hand, and one advice from simulated runs."""

import json
import math
import sys
from dataclasses import replace

import pytest

from snapline.cli.app import main
from snapline.errors import UsageError
from snapline.rundir.spec import Spec
from snapline.scale.advice.behaviour import advise
from snapline.scale.advice.rough import ROUGH
from snapline.scale.advice.weigh import (
    AtInterval,
    Behaviour,
    Latency,
    Needs,
    choose,
    daly,
    offer_at,
)
from snapline.scale.marks import Mark
from snapline.scale.profile import MEASURED, Checked, PredictionCheck

HOUR = 3600.0

#: a checkpoint takes 10 ms of the busiest slot, which computes 40 % of its time without any
USUAL = Behaviour(
    "p",
    plain_busy=0.4,
    often=AtInterval(0.5, 0.42, 20.0, 40.0, 600.0),
    seldom=AtInterval(2.0, 0.405, 17.0, 10.0, 2_100.0),
    detection_s=(0.1, 0.1),
    restart_s=(0.9, 1.1),
    lag=(0.3, 0.9),
    checkpoint_s=0.05,
)


def test_the_interval_without_targets_is_youngs():
    assert daly(0.01, HOUR) == pytest.approx(math.sqrt(2 * 0.01 * HOUR), rel=0.01)
    assert daly(10_000, HOUR) == HOUR
    found = choose(USUAL, Needs(HOUR))
    assert found.young_s == pytest.approx(daly(0.01, HOUR))
    assert found.binding == "no target: it is the cheapest interval"
    assert 0.4 * found.young_s < found.offer.interval_s < 4 * found.young_s


def test_what_is_predicted_at_an_interval_follows_from_two():
    one = offer_at(USUAL, Needs(HOUR), 1.0)
    assert one.overhead.value == pytest.approx(1 - 0.4 / 0.41)
    assert one.overhead.low == 0
    assert one.overhead.high == pytest.approx(1 - 0.9 * 0.4 / 0.41)
    spare = 0.41 / 0.59
    assert one.recovery_s.value == pytest.approx(1.1 + spare * (1.1 + 0.6))
    assert one.recovery_s.high == pytest.approx(1.25 * (1.2 + spare * (1.2 + 1.05)))
    assert one.bytes_per_record.value == pytest.approx(18.0)
    assert one.p99_ms.value == pytest.approx(20.0)
    published = offer_at(USUAL, Needs(HOUR, latency=Latency.PUBLISHED), 4.0)
    assert published.p99_ms.value == pytest.approx(4_100.0)


def test_a_target_shortens_the_interval_and_is_named():
    free = choose(USUAL, Needs(HOUR)).offer
    tight = choose(USUAL, Needs(HOUR, rto_s=5.0))
    assert tight.feasible
    assert tight.binding == "rto: a longer interval would be cheaper"
    assert tight.offer.interval_s < free.interval_s
    assert tight.offer.recovery_s.high <= 5.0
    seen = choose(USUAL, Needs(HOUR, p99_ms=2_000, latency=Latency.PUBLISHED))
    assert (seen.feasible, seen.binding[:3]) == (True, "p99")
    assert seen.offer.p99_ms.high <= 2_000


def test_what_no_interval_can_do_is_infeasible_and_says_why():
    assert choose(USUAL, Needs(HOUR, rto_s=1.0)).binding.startswith("rto: recovery takes up to")
    assert choose(USUAL, Needs(HOUR, p99_ms=5.0)).binding.startswith("p99: it is up to 15 ms")
    both = choose(USUAL, Needs(HOUR, rto_s=3.5, p99_ms=16.0))
    assert (both.feasible, both.binding) == (False, "no interval meets all targets at once")
    late = replace(USUAL, often=AtInterval(0.5, 1.4, 1, 1, 1), seldom=AtInterval(2.0, 1.4, 1, 1, 1))
    assert choose(late, Needs(HOUR)).binding == "rate: the slots cannot keep up with the input"


def test_a_job_that_fails_before_it_has_recovered_is_infeasible():
    """Its cost is not capped, so the longest interval, with the longest recovery, is not the best."""
    found = choose(USUAL, Needs(1.0))
    assert not found.feasible
    assert found.binding.startswith("mtbf: recovery takes up to 3 s")
    assert found.offer.misses == ("mtbf",)
    assert found.offer.interval_s < 1.0
    assert offer_at(USUAL, Needs(1.0), 600.0).cost > 100
    barely = choose(USUAL, Needs(5.0))
    assert barely.feasible
    assert barely.offer.recovery_s.high < 5.0


def test_what_lies_at_an_end_of_what_is_tried_is_said_to_lie_there():
    """Failures never come, or checkpoints cost nothing that could be seen."""
    found = choose(USUAL, Needs(1e9))
    assert (found.feasible, found.offer.interval_s) == (True, 600.0)
    assert found.binding == "no target: it is the longest interval that is tried"
    free = replace(USUAL, often=replace(USUAL.often, busy=0.4))
    assert (
        choose(free, Needs(HOUR)).binding == "no target: it is the shortest interval that is tried"
    )


def test_failures_that_come_often_are_seen_in_the_p99():
    rare, often = (offer_at(USUAL, Needs(mtbf), 2.0).p99_ms for mtbf in (HOUR, 60.0))
    assert rare.high == pytest.approx(15.0)
    assert often.high > 1_000


def test_the_round_numbers_are_a_whole_profile_that_nobody_has_checked():
    assert set(ROUGH.costs_us) == set(MEASURED)
    assert (ROUGH.checks, ROUGH.fit.residuals) == ((), ())


def test_the_command_predicts_and_says_that_nobody_calibrated(monkeypatch, capsys):
    command = ["--rate", "100", "--rto", "30s", "--protocol", "aligned", "--json"]
    monkeypatch.setattr(sys, "argv", ["snapline", "advise", "protocol", "counting", *command])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr()
    assert ended.value.code == 0, told.err
    found = json.loads(told.out)
    assert (found["feasible"], found["calibrated"]) == (True, False)
    assert set(found["marks"].values()) == {"not validated"}
    [choice] = found["choices"]
    assert choice["protocol"] == "aligned"
    for name in ("overhead", "recovery_s", "p99_ms", "bytes_per_record"):
        assert choice[name]["low"] <= choice[name]["value"] <= choice[name]["high"]
    assert choice["recovery_s"]["high"] <= 30
    assert "simulating 4 of 4" in told.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("q12 --rate max", "--rate max"),
        ("q12 --latency soon", "--latency 'soon'"),
        ("reachability --protocol aligned", "cannot run a dataflow with a cycle"),
        ("q12 --protocol none", "is none that gives exactly-once output"),
        ("nothing", "nothing"),
        ("my.py:flow --rate 5", "--rate is for workloads; my.py:flow brings its own sources"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_simulated(
    arguments, said, monkeypatch, capsys
):
    monkeypatch.setattr(sys, "argv", ["snapline", "advise", "protocol", *arguments.split()])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr()
    assert (ended.value.code, told.out) == (2, "")
    assert said in told.err
    assert "simulating" not in told.err


def test_recovery_is_never_validated_however_well_restarts_were_predicted():
    """A recovery also catches up, which nobody compares; overhead is a ratio, and may be."""
    spec = Spec("counting", rate=100, options=(("batch", 10),))
    where = {"cores": 2, "interval_ms": 500, "rate": 100, "batch": 10}
    checks = [
        PredictionCheck(what, "counting", "aligned", 2, 1.0, 1.0, **where) for what in Checked
    ]
    profile = ROUGH.with_checks(tuple(checks))
    found = advise(spec, Needs(HOUR), profile, ["aligned"], cores=2).marks
    assert {name: mark for name, (mark, _) in found.items()} == {
        "overhead": Mark.EXTRAPOLATED,
        "recovery": Mark.NOT_VALIDATED,
        "bytes": Mark.EXTRAPOLATED,
        "p99": Mark.NOT_VALIDATED,
    }
    assert found["bytes"][1] == "compared with another interval"


PAIRS = """
import snapline as sl

flow = sl.Dataflow("pairs")
orders = flow.source(sl.generated(lambda n: {"order": n}, rate=100), name="orders")
payments = flow.source(sl.generated(lambda n: {"order": n}, rate=100), name="payments")
orders.barrier(payments, name="pair").sink("pairs")
"""

TIMELESS = """
import snapline as sl

flow = sl.Dataflow("timeless")
readings = flow.source(sl.generated(lambda n: {"machine": n % 5}, rate=100), name="readings")
counts = readings.key_by("machine").tumbling("500ms").count(name="count")
counts.map(lambda rows: sl.Batch.of(count=rows["count"])).sink("counts")
"""


def own(tmp_path, text):
    (tmp_path / "own.py").write_text(text)
    return Spec(f"{tmp_path}/own.py:flow")


def test_a_flow_that_cannot_run_without_a_protocol_is_compared_with_its_own_runs(tmp_path):
    """A barrier by order is refused under `none`, so nobody knows what logs and headers cost."""
    found = advise(own(tmp_path, PAIRS), Needs(HOUR), ROUGH, ["aligned"])
    (choice,) = found.choices
    often, seldom = choice.behaviour.often, choice.behaviour.seldom
    each_s = (often.busy - seldom.busy) / 1.5
    assert choice.behaviour.plain_busy == pytest.approx(seldom.busy - each_s / 2)
    mark, why = found.marks["overhead"]
    assert (mark, why.startswith("it lacks what logs and headers cost")) == (
        Mark.NOT_VALIDATED,
        True,
    )


def test_a_flow_whose_rows_carry_no_time_has_no_p99_and_cannot_be_asked_for_one(tmp_path):
    spec = own(tmp_path, TIMELESS)
    (choice,) = advise(spec, Needs(HOUR), ROUGH, ["aligned"]).choices
    assert (choice.feasible, choice.offer.p99_ms) == (True, None)
    with pytest.raises(UsageError, match="no row that was written has a time"):
        advise(spec, Needs(HOUR, p99_ms=50.0), ROUGH, ["aligned"])


def test_without_a_p99_the_table_and_the_json_say_so(tmp_path, monkeypatch, capsys):
    flow = own(tmp_path, TIMELESS).flow
    for as_json in ((), ("--json",)):
        command = ["snapline", "advise", "protocol", flow, "--protocol", "aligned", *as_json]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as ended:
            main()
        told = capsys.readouterr()
        assert ended.value.code == 0, told.err
        if as_json:
            assert json.loads(told.out)["choices"][0]["p99_ms"] is None
        else:
            assert "ms (" not in told.out
