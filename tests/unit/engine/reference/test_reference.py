"""A dataflow run without an engine: its output is what the oracles of the workloads expect."""

import numpy as np
import operators_of_ones_own as own
import pytest

import snapline as sl
from snapline.core.guarantee import Guarantee
from snapline.dataflow.deploy import deploy
from snapline.engine.reference.mishaps import Breaker, Mishap, mishaps_of
from snapline.engine.reference.reference import reference_output
from snapline.errors import SnaplineError
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params
from snapline.workload.oracles.reference import Comparer

EXACTLY = Guarantee.EXACTLY_ONCE
PARAMS = Params(seed=3, partitions=2, records=80, duration_ms=2_400)


@pytest.mark.parametrize(("order", "lean"), [(0, False), (1, True)])
@pytest.mark.parametrize("name", WORKLOADS)
def test_the_reference_output_is_what_the_oracle_expects(name, order, lean):
    workload = WORKLOADS[name]
    outputs = reference_output(deploy(workload.build(PARAMS), 2, lean=lean), order)
    assert sum(len(batch) for batch in outputs.values()) > 10
    assert workload.judge(PARAMS, outputs, {}, EXACTLY) == []


def counts(order):
    """Which record got which number depends on the order: `time` is not the same every time."""
    return reference_output(deploy(WORKLOADS["counting"].build(PARAMS), 2), order)


def compare(found, level=EXACTLY):
    return Comparer(found, counts, [("key",)]).at(level)


def test_columns_that_depend_on_the_order_of_input_are_left_out():
    assert counts(0)["counts"].rows() != counts(7)["counts"].rows()
    comparison = compare(counts(7))
    assert comparison.kept == "yes"
    (views,) = comparison.views
    assert views.startswith("of 'counts' the rows of (key, time), the rows of (key, count), ")


def test_a_lost_row_and_a_doubled_one_are_named_even_so():
    whole = counts(7)["counts"]
    size = len(whole)
    lost = {"counts": whole.slice(0, size - 1)}
    twice = {"counts": whole.take(np.r_[np.arange(size), size - 1])}
    key, count, time = (whole[name][-1] for name in ("key", "count", "time"))
    assert [(p.kind, p.record) for p in compare(lost).problems][:2] == [
        ("missing", f"counts(key={key}, time={time})"),
        ("missing", f"counts(key={key}, count={count})"),
    ]
    assert compare(twice).problems[0].kind == "duplicate"
    assert compare(lost, Guarantee.AT_MOST_ONCE).problems == ()
    assert compare(twice, Guarantee.AT_LEAST_ONCE).problems == ()


def test_a_wrong_count_is_found_although_counts_depend_on_the_order():
    whole = counts(7)["counts"]
    wrong = whole["count"].copy()
    wrong[-1] += 1_000
    found = {"counts": whole.with_columns(count=wrong)}
    assert [p.kind for p in compare(found).problems][:2] == ["missing", "invented"]


def test_sources_fall_behind_each_other_in_every_way():
    flow = sl.Dataflow("pairs")
    flow.source(sl.generated(lambda n: {"n": n}, rate=200)).broadcast().map(lambda b: b).sink("out")
    deployment = deploy(flow.bind(2, 2_000), 2)

    def first_half_from_one(order):
        seen = reference_output(deployment, order)["out"]["n"][:200] % 2
        return int((seen == 0).sum())

    assert first_half_from_one(1) < 60
    assert first_half_from_one(2) > 140


def test_what_an_operator_raises_is_said_with_its_name():
    class Strict(own.Sum):
        def process(self, port, batch):
            raise KeyError("colour")

    with pytest.raises(SnaplineError, match=r"without any failure totals/\d raises KeyError"):
        reference_output(deploy(own.summed(Strict), 2), 0)


def test_a_flow_that_is_broken_on_purpose_puts_out_something_else():
    deployment = deploy(own.summed(own.Sum), 2)
    breaker = Breaker(deployment, 1)
    assert breaker.plain == reference_output(deployment, 1)
    assert mishaps_of(deployment) == [
        Mishap("loses", "source"),
        Mishap("repeats", "source"),
        Mishap("forgets", "totals"),
        Mishap("loses", "out"),
        Mishap("repeats", "out"),
    ]
    rows = {
        m: len(breaker.broken(m, 0)["out"]) - len(breaker.plain["out"])
        for m in mishaps_of(deployment)
    }
    lost, repeated, forgotten, not_written, written_twice = rows.values()
    assert (forgotten, lost < 0, not_written < 0) == (0, True, True)
    assert (repeated > 0, written_twice > 0) == (True, True)
    forgotten = breaker.broken(Mishap("forgets", "totals"), 0)["out"]
    assert forgotten["total"].sum() < breaker.plain["out"]["total"].sum()


def test_an_operator_that_raises_when_it_has_forgotten_is_noticed_by_that():
    class Strict(own.Sum):
        def process(self, port, batch):
            if not self.sums and batch["time"][0] > 1_000:
                raise ValueError("where is my state?")
            return super().process(port, batch)

    breaker = Breaker(deploy(own.summed(Strict), 2), 0)
    attempts = [breaker.broken(Mishap("forgets", "totals"), attempt) for attempt in range(8)]
    assert None in attempts
