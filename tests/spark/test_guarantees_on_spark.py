"""PGVal's topologies on a real Spark, broken as PGVal breaks them: twelve runs of the table of guarantees.

The whole table, every protocol on both topologies with every fault, is `benchmarks/judge/guarantees.py`.
"""

import pytest
from run_helpers import assert_usable_and_empty

from benchmarks.judge import guarantees

pytestmark = pytest.mark.spark

CASES = [
    ("aligned", "sst", "kill"),
    ("aligned", "mst", "delay-long"),
    ("aligned", "sst", "delay-short"),
    ("aligned-cyclic", "mst", "delay-short"),
    ("unaligned", "mst", "kill"),
    ("synchronous", "sst", "pause"),
    ("uncoordinated", "mst", "kill"),
    ("uncoordinated", "sst", "delay-long"),
    ("hmnr", "mst", "pause"),
    ("bcs", "sst", "kill"),
    ("none", "sst", "kill"),
    ("none", "mst", "delay-long"),
]


@pytest.mark.parametrize(("protocol", "topology", "fault"), CASES)
def test_a_promise_is_kept_and_what_is_lost_is_noticed_and_named(
    spark, tmp_path, protocol, topology, fault
):
    case = guarantees.Case(protocol, topology, fault)
    run = guarantees.measure(case, spark, tmp_path)
    assert case.surprises(run) == []
    assert run.metrics["lineage"]["phases"].keys() == {"control", "failure", "recovery"}
    if run.verdict.kept == "no":
        assert "is lost" in run.verdict.because
        # It was active, or, on a machine that lags behind its input, came right after.
        assert guarantees.FAULTS[fault] in run.verdict.because
        # Sources go on at the present: what was read before is not read again.
        assert run.verdict.guarantees["at-most-once"] == "yes"
    assert_usable_and_empty(spark)
