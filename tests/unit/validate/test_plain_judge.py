"""Whole columns and one record after the other come to the same judgement, field by field."""

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_judge import SIZE_MS, nonsense, plain_judge, tables, watermarks

from snapline.batch import concat
from snapline.validate.causes import Cause
from snapline.validate.check import judge, judge_cases

SMALL = (1, 2, 3)
EXTREME = (-(2**63), 2**63 - 1, 0)  # their distance is no int64
WORDS = ("é", "b", "")


@settings(max_examples=100)
@given(st.randoms(use_true_random=False), st.sampled_from([SMALL, EXTREME, WORDS]), st.booleans())
def test_nonsense_is_judged_alike(dice, names, posts):
    rows = nonsense(dice, names, posts)
    assert judge(*tables(*rows, posts=posts), size_ms=SIZE_MS) == plain_judge(*rows)
    marks = watermarks(dice, rows[0])
    given = {"lateness_ms": dice.choice((0, 20)), "until_ms": dice.choice((None, 100, 150, 1_000))}
    found = judge(*tables(*rows, posts=posts, marks=marks), size_ms=SIZE_MS, **given)
    assert found == plain_judge(*rows, marks=marks, **given)


@pytest.mark.parametrize("names", [SMALL, WORDS])
def test_thousands_of_nonsense_cases_are_judged_alike_and_show_every_cause(names):
    dice = random.Random(6)
    rows = [nonsense(dice, names) for _ in range(3_000)]
    marks = [watermarks(dice, inputs) for inputs, *_ in rows]
    batches = [
        [
            table.with_columns(case=np.full(len(table), case))
            for table in tables(*case_rows, marks=marks[case])
        ]
        for case, case_rows in enumerate(rows)
    ]
    parts = [
        concat([table for table in column if len(table)]) for column in zip(*batches, strict=True)
    ]
    for until_ms in (150, None):
        judged = judge_cases(*parts, SIZE_MS, lateness_ms=20, until_ms=until_ms)
        given = {"lateness_ms": 20, "until_ms": until_ms}
        plain = {
            case: plain_judge(*case_rows, marks=marks[case], **given)
            for case, case_rows in enumerate(rows)
            if any(case_rows)
        }
        assert judged == plain
    seen = Counter(cause for verdict in plain.values() for cause in verdict.causes)
    assert min(seen[cause] for cause in Cause) > 20
