"""The judge finds what was broken on purpose, and calls it by its name."""

import numpy as np
import pytest

from mutants import MUTANTS, UNTOUCHED, cases
from snapline.validate.causes import Cause
from snapline.validate.check import judge, judge_cases


@pytest.mark.parametrize(("count", "posts"), [(7_000, True), (3_000, False)])
def test_the_confusion_matrix_of_mutants_and_causes_is_diagonal(count, posts):
    drawn = cases(count, seed=6, posts=posts)
    judged = judge_cases(drawn.inputs, drawn.outputs, drawn.late, drawn.size_ms)
    matrix = drawn.confusion(judged)
    names = {UNTOUCHED: None, **{name: cause for name, (cause, _) in MUTANTS.items()}}
    if not posts:
        del names["swap two pairs"]
    assert set(matrix) == set(names.items())
    assert min(matrix.values()) >= count // 12  # every mutant was tried
    assert sum(matrix.values()) == count


def test_a_mutant_has_no_second_name():
    drawn = cases(2_000, seed=1)
    judged = judge_cases(drawn.inputs, drawn.outputs, drawn.late, drawn.size_ms)
    for number, verdict in judged.items():
        expected = {drawn.expected(number)} - {None}
        lost_beside = {Cause.INCOMPLETE} if expected == {Cause.TWICE_INSIDE} else set()
        assert set(verdict.causes) == expected | lost_beside


@pytest.mark.parametrize("posts", [True, False])
def test_cases_do_not_see_each_other(posts):
    drawn = cases(120, seed=3, posts=posts)
    together = judge_cases(drawn.inputs, drawn.outputs, drawn.late, drawn.size_ms)
    for number in range(120):
        tables = (drawn.inputs, drawn.outputs, drawn.late)
        parts = [table.take(np.flatnonzero(table["case"] == number)) for table in tables]
        assert judge(*parts, size_ms=drawn.size_ms) == together[number]


def test_the_same_seed_gives_the_same_cases():
    one, same, other = (cases(30, seed=seed) for seed in (4, 4, 5))
    assert one == same
    assert one.outputs != other.outputs
