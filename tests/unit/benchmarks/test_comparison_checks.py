"""What the comparison with peers rests on: the sums that judge timed runs, and the records for peers."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.common import checks
from benchmarks.common import snapline_side as side
from snapline.batch import Batch
from snapline.core.guarantee import Guarantee
from snapline.core.messages import END_OF_TIME
from snapline.dataflow.deploy import deploy
from snapline.engine.reference.reference import reference_output
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params
from snapline.workload.nexmark.oracle import SINK

GOLDEN = Path(__file__).parents[3] / "benchmarks" / "flink" / "peer" / "golden.txt"
PARAMS = Params(seed=5, partitions=2, records=900, duration_ms=25_000, full=True, hot=10)
QUERIES = ("q1", "q3", "q5", "q7", "q8", "q12")


@pytest.fixture(params=QUERIES)
def load(request):
    return checks.Load(request.param, PARAMS)


@pytest.fixture
def output(load):
    return reference_output(deploy(load.flow(), 2), 0)[SINK]


@pytest.mark.usefixtures("both_forms")
def test_the_golden_records_of_the_peers_are_those_of_the_generator():
    golden = GOLDEN.read_text()
    made = "\n".join(checks.golden()) + "\n"
    assert made == golden, (
        "the generator has changed: make golden.txt again, as checks.py says, and Model.java"
    )


def test_output_that_the_oracle_accepts_has_the_expected_tally(load, output):
    problems = WORKLOADS[load.query].judge(load.params, {SINK: output}, {}, Guarantee.EXACTLY_ONCE)
    assert not problems
    assert len(output) > 30
    assert checks.counted(load.query, output) == checks.expected(load)


def test_a_missing_a_doubled_and_a_wrong_row_change_the_tally(load, output):
    rows = np.arange(len(output))
    missing = output.take(rows[1:])
    doubled = output.take(np.append(rows[1:], rows[-1]))
    column = {"q1": "price", "q12": "count"}.get(load.query, "auction")
    wrong = Batch({**output.columns, column: output[column] + (rows == 7)}, len(output))
    for other in (missing, doubled, wrong):
        assert checks.counted(load.query, other) != checks.expected(load)


def test_pairs_are_hashed_as_the_peers_hash_them():
    person, auction = np.array([3, 2**39]), np.array([5, 0])
    expected = [(3 * 0x9E3779B97F4A7C15 ^ 5 * 0xD1B54A32D192ED03), 2**39 * 0x9E3779B97F4A7C15]
    assert checks.pair_hash(person, auction).tolist() == [word % 2**64 for word in expected]
    assert person.tolist() == [3, 2**39]
    assert auction.tolist() == [5, 0]


def test_persons_and_auctions_both_count_as_input():
    assert checks.Load("q3", PARAMS).records == 2_400
    assert checks.Load("q12", PARAMS).records == 1_800


def test_a_counting_sink_puts_out_the_tally_at_the_end_and_nothing_else(load):
    rows = reference_output(deploy(side.with_counting_sink(load.flow()), 2), 0)[SINK]
    count, checksum = checks.expected(load)
    assert len(rows) == 2
    assert rows["count"].sum() == count
    assert rows["checksum"].sum().astype(np.uint64) == checksum


def test_a_counting_sink_goes_on_with_what_it_had_counted(load, output):
    half = len(output) // 2
    before, after = side.CountingSink(load.query), side.CountingSink(load.query)
    before.process("in", output.slice(0, half))
    after.restore([before.capture(full=True)])
    after.process("in", output.slice(half, len(output)))
    ((_, row),) = after.on_watermark(END_OF_TIME)
    assert side.tally_of(row) == checks.expected(load)
