"""Random changes to right outputs are never acquitted, right outputs are never accused."""

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest
from verdict_fuzzer import Writer, fuzz, plain_view, right

from snapline.batch import Batch, concat
from snapline.core.guarantee import Guarantee
from snapline.dataflow.deploy import deploy
from snapline.engine.reference.reference import reference_output
from snapline.judge.evidence import RunEnding
from snapline.judge.run_directory import judge
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params


@pytest.mark.parametrize("changed", [True, False])
def test_some_outputs(tmp_path, changed):
    wrong, altered = fuzz(30, "ci", tmp_path, changed)
    assert wrong == []
    assert altered > 20 if changed else altered == 0


@pytest.mark.slow
@pytest.mark.parametrize("changed", [True, False])
def test_many_outputs(tmp_path, changed):
    assert fuzz(5_000, "slow", tmp_path, changed)[0] == []


def test_the_plain_reader_and_the_judge_read_the_same(tmp_path):
    for number, workload in enumerate(WORKLOADS):
        writer = Writer(tmp_path, workload, random.Random(number))
        writer.write(right(workload, 0))
        rows, holds = plain_view(writer.directory)
        assert holds
        judgement = judge(writer.directory, ending=RunEnding())
        found = {sink: count for sink, count in judgement.rows.items() if count}
        assert found == {sink: counted.total() for sink, counted in rows.items()}


# All outputs over at most four records.

TINY = Params(seed=1, partitions=1, records=4, duration_ms=400)


def candidates(rows):
    """The right rows, and one that differs from the first in each of its columns."""
    numbers = [name for name in rows.columns if isinstance(rows[name], np.ndarray)]
    first = rows.slice(0, 1)
    others = [first.with_columns(**{name: first[name] + 1}) for name in numbers]
    return [*(rows.slice(n, n + 1) for n in range(len(rows))), *others]


@pytest.mark.parametrize("records", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["counting", "q1", "q12"])
def test_of_all_outputs_over_few_records_only_the_right_ones_are_accepted(name, records):
    params = replace(TINY, records=records)
    workload = WORKLOADS[name]
    ((sink, rows),) = reference_output(deploy(workload.build(params), 1), 0).items()
    pool = candidates(rows)
    accepted = []
    for size in range(records + 2):
        for chosen in itertools.combinations_with_replacement(range(len(pool)), size):
            parts = [pool[n] for n in chosen]
            output = {sink: concat(parts) if parts else Batch({}, 0)}
            if not workload.judge(params, output, {}, Guarantee.EXACTLY_ONCE):
                accepted.append(sorted(map(repr, output[sink].rows())))
    assert accepted == [sorted(map(repr, rows.rows()))]
