"""Joins whose records meet as they come: what is accepted is what some order of arrival gives, exactly."""

import itertools
import random

import numpy as np
import pytest

from interleaver import run
from snapline.batch import concat
from snapline.core.guarantee import Guarantee
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params
from snapline.workload.joins.model import asking, shape_of, stored
from snapline.workload.oracles.asked_windows import AskingRecords, StoredRows, judge_asked
from snapline.workload.oracles.verdict import Problems

EXACTLY = Guarantee.EXACTLY_ONCE
ROWS = [0, 1, 0, 1]  # the keys of the rows, in their order
ASKED = [0, 1, 0, 1]  # those of the records: two of each partition
WINDOW = 2


def given(rows, records, window):
    """All results of all orders in which these rows and the records of both partitions can come."""
    found = set()
    lanes = [[("row", n) for n in rows]]
    lanes += [[("ask", n) for n in records if n // 2 == partition] for partition in (0, 1)]

    def merge(lanes, came):
        if not any(lanes):
            held, pairs = [], []
            for what, n in came:
                if what == "row":
                    held.append(n)
                else:
                    pairs += [(n, r) for r in held[-window:] if ROWS[r] == ASKED[n]]
            found.add(frozenset(pairs))
        for which, lane in enumerate(lanes):
            if lane:
                rest = [other[1:] if n == which else other for n, other in enumerate(lanes)]
                merge(rest, [*came, lane[0]])

    merge(lanes, [])
    return found


def possible(by_key):
    """Keys may be in different tasks, and then nothing of one says anything of another."""
    if not by_key:
        return given(range(4), range(4), WINDOW)
    each = []
    for key in (0, 1):
        rows, records = ([n for n, own in enumerate(keys) if own == key] for keys in (ROWS, ASKED))
        each.append(given(rows, records, WINDOW))
    return {a | b for a in each[0] for b in each[1]}


def accepted(pairs, by_key):
    keys = np.array(ROWS)
    places = np.array([ROWS[:n].count(key) for n, key in enumerate(ROWS)])
    rows = StoredRows(keys, places if by_key else np.arange(4), np.bincount(ROWS), WINDOW)
    if not by_key:
        rows = StoredRows(keys, np.arange(4), np.array([4, 4]), WINDOW)
    partition = np.array([0, 0, 1, 1])
    lanes = partition * 2 + np.array(ASKED) if by_key else partition
    records = AskingRecords(np.array(ASKED), lanes)
    columns = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    findings = Problems(EXACTLY)
    judge_asked(findings, rows, records, (columns[:, 0], columns[:, 1]), "{} with {}".format)
    return not findings.problems


@pytest.mark.parametrize("by_key", [False, True], ids=["one window", "by key"])
def test_a_result_is_accepted_if_and_only_if_an_order_gives_it(by_key):
    right = possible(by_key)
    able = [(a, r) for a, key in enumerate(ASKED) for r, own in enumerate(ROWS) if key == own]
    every = itertools.chain.from_iterable(
        itertools.combinations(able, n) for n in range(len(able) + 1)
    )
    verdicts = {frozenset(pairs): accepted(pairs, by_key) for pairs in every}
    assert {pairs for pairs, fine in verdicts.items() if fine} == right
    assert 5 < len(right) < len(verdicts)


@pytest.mark.parametrize("name", ["sjoin", "gjoin"])
@pytest.mark.parametrize("seed", range(3))
def test_every_interleaving_is_explained_and_most_that_is_broken_is_not(name, seed):
    workload, params = WORKLOADS[name], Params(seed=seed, settings=(("ordered", 0),))
    result = run(workload, params, seed)
    pairs, rng = result.output["pairs"], random.Random(seed)
    assert workload.judge(params, result.output, {}, EXACTLY) == []
    seen = 0
    for _ in range(12):
        n = rng.randrange(len(pairs))
        seen += bool(
            workload.judge(params, {"pairs": pairs.take(np.arange(len(pairs)) != n)}, {}, EXACTLY)
        )
        twice = {"pairs": concat([pairs, pairs.slice(n, n + 1)])}
        assert [p.kind for p in workload.judge(params, twice, {}, EXACTLY)] == ["duplicate"]
    assert seen >= 6


@pytest.mark.parametrize("by_key", [False, True])
def test_the_sizes_are_those_of_the_paper(by_key):
    shape = shape_of(Params(full=True), by_key=by_key)
    wanted = (1_024, 50, 600) if by_key else (8_192, 1_500, 1_500)
    assert (shape.window, shape.keys, shape.asked) == wanted
    assert not shape.ordered
    rows = stored(Params(full=True), shape)
    assert rows.partitions == 1
    assert {len(text) for text in rows.everything()["text"].to_list()} == {70}
    asked = asking(Params(full=True), shape).everything()
    assert {len(text) for text in asked["text"].to_list()} == {10}


def test_keys_by_zipf_come_as_often_as_their_ranks_say():
    params = Params(records=3_000, full=True, settings=(("zipf", 1_000),))
    keys = stored(params, shape_of(params, by_key=True)).everything()["key"]
    counts = np.bincount(keys, minlength=50)
    assert counts.argmax() == 0
    assert 0.8 < counts[0] / counts[1] / 2 < 1.25
    assert 0.7 < counts[0] / counts[9] / 10 < 1.4
    even = stored(Params(records=3_000, full=True), shape_of(Params(full=True), by_key=True))
    assert np.bincount(even.everything()["key"]).min() > 100
