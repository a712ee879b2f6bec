"""The evaluation topology of ABS: what it is made of, and that a fault in any stage is seen and named."""

from itertools import pairwise

import numpy as np
import pytest

from interleaver import run
from snapline.core.guarantee import Guarantee
from snapline.dataflow.partition import ByKey, targets_of
from snapline.dataflow.state.keyed_state import KeyedState
from snapline.workload import WORKLOADS
from snapline.workload.abs import query
from snapline.workload.abs.model import STAGES, records, unpacked
from snapline.workload.common.base import Params

ABS = WORKLOADS["abs"]
PARAMS = Params(seed=5, records=40)
FULL = Params(seed=5, partitions=2, records=50_000, full=True)

every_stage = pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.key)


def test_it_has_six_operators_and_three_shuffles_each_by_another_key():
    graph = ABS.build(PARAMS).graph
    assert len(graph.nodes) == 6
    shuffles = [edge.routing.columns for edge in graph.edges if isinstance(edge.routing, ByKey)]
    assert shuffles == [("first",), ("second",), ("third",)]


@pytest.mark.parametrize("params", [PARAMS, FULL], ids=["small", "full"])
def test_a_record_is_unpacked_into_its_keys(params):
    packed, keys = records(params).make(1, 0, 500), unpacked(params).make(1, 0, 500)
    assert query.unpack(params, packed) == keys


def test_every_shuffle_moves_records_from_every_task_to_every_task():
    table = unpacked(FULL).everything()
    stages = [targets_of(table, (stage.key,), 4) for stage in STAGES]
    for one, next_one in pairwise(stages):
        moved = np.bincount(one.astype(np.int64) * 4 + next_one, minlength=16) / len(table)
        assert moved.min() > 0.02  # 1/16 if all tasks had the same number of keys


@every_stage
def test_the_full_size_has_ten_thousand_a_thousand_and_a_hundred_keys(stage):
    keys = unpacked(FULL).everything()[stage.key]
    assert keys.max() + 1 == {"first": 10_000, "second": 1_000, "third": 100}[stage.key]


@every_stage
def test_so_many_percent_of_the_records_have_the_hot_key_of_each_stage(stage):
    params = Params(seed=5, partitions=2, records=20_000, full=True, hot=30)
    shares = np.bincount(unpacked(params).everything()[stage.key]) / 40_000
    assert 0.29 < shares.max() < 0.33
    assert np.sort(shares)[-2] < 0.02


@every_stage
@pytest.mark.parametrize("faulty", ["lost", "twice"])
def test_a_stage_that_loses_a_count_or_gives_it_twice_is_named(monkeypatch, stage, faulty):

    def wrong(state, value, columns):
        """The fifth record of a key gets the sixth number, or the fourth."""
        counts = count_up(state, value, columns)
        if columns[0] is not touched.get("column"):
            return counts
        return np.where(counts == 5, 6 if faulty == "lost" else 4, counts)

    process, touched, count_up = query.Tally.process, {}, KeyedState.count_up

    def at_the_stage(self, port, batch):
        if self._stage is stage:
            touched["column"] = batch[stage.key]
        return process(self, port, batch)

    monkeypatch.setattr(KeyedState, "count_up", wrong)
    monkeypatch.setattr(query.Tally, "process", at_the_stage)
    result = run(ABS, PARAMS)
    problems = ABS.judge(PARAMS, result.output, {}, Guarantee.EXACTLY_ONCE)
    assert problems
    assert all(problem.record.startswith(f"count of {stage.key} key") for problem in problems)
