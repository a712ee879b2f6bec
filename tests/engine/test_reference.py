"""A dataflow run without an engine: its output is what the oracles of the workloads expect."""

import numpy as np
import pytest

from snapline.batch import Batch
from snapline.core.policy import Guarantee
from snapline.dataflow.graph import deploy
from snapline.engine.reference import reference_output
from snapline.workload import WORKLOADS
from snapline.workload.base import Params
from snapline.workload.reference import compare

EXACTLY = Guarantee.EXACTLY_ONCE
PARAMS = Params(seed=3, partitions=2, records=80, duration_ms=2_400)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("name", WORKLOADS)
def test_the_reference_output_is_what_the_oracle_expects(name, order):
    workload = WORKLOADS[name]
    outputs = reference_output(deploy(workload.build(PARAMS), 2), order)
    assert sum(len(batch) for batch in outputs.values()) > 10
    assert workload.judge(PARAMS, outputs, {}, EXACTLY) == []


def counts(order):
    """Which record got which number depends on the order: `time` is not the same every time."""
    return reference_output(deploy(WORKLOADS["counting"].build(PARAMS), 2), order)


def test_columns_that_depend_on_the_order_of_input_are_left_out():
    assert counts(0)["counts"].rows() != counts(7)["counts"].rows()
    comparison = compare(counts(7), counts, EXACTLY)
    assert not comparison.problems
    assert sorted(comparison.left_out) == ["counts.count", "counts.time"]


def test_a_lost_row_and_a_doubled_one_are_named_even_so():
    whole = counts(7)["counts"]
    size = len(whole)
    lost = {"counts": whole.slice(0, size - 1)}
    twice = {"counts": whole.take(np.r_[np.arange(size), size - 1])}
    key, count, time = (whole[name][-1] for name in ("key", "count", "time"))
    assert [(p.kind, p.record) for p in compare(lost, counts, EXACTLY).problems] == [
        ("missing", f"counts(key={key}, count={count})"),
        ("missing", f"counts(key={key}, time={time})"),
    ]
    assert {p.kind for p in compare(twice, counts, EXACTLY).problems} == {"duplicate"}
    assert compare(lost, counts, Guarantee.AT_MOST_ONCE).problems == ()
    assert compare(twice, counts, Guarantee.AT_LEAST_ONCE).problems == ()


def test_a_wrong_count_is_found_although_counts_depend_on_the_order():
    whole = counts(7)["counts"]
    wrong = whole["count"].copy()
    wrong[-1] += 1_000
    found = {"counts": whole.with_columns(count=wrong)}
    kinds = [problem.kind for problem in compare(found, counts, EXACTLY).problems]
    assert kinds == ["missing", "invented"]


def test_output_that_never_comes_out_the_same_is_undecided():
    def shuffled(order):
        return {"out": Batch.of(a=[order], b=[order], c=[order])}

    comparison = compare({"out": Batch.of(a=[9], b=[9], c=[9])}, shuffled, EXACTLY)
    assert "depends on the order" in comparison.undecided


def test_a_sink_without_rows_is_compared_too():
    def none(order):
        return {"out": Batch({}, 0)}

    assert compare({"out": Batch({}, 0)}, none, EXACTLY).problems == ()
    (problem,) = compare({"out": Batch.of(a=[1])}, none, EXACTLY).problems
    assert (problem.kind, problem.record) == ("invented", "out(a=1)")
