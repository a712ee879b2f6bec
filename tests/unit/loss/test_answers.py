"""Answers of runs, held against the right ones: which rows belong together, and which moment counts."""

import numpy as np
import pytest

from snapline.batch import Batch
from snapline.errors import UsageError
from snapline.loss.answers import deviation_of, right_answer
from snapline.rundir.program import find_program
from snapline.rundir.spec import Spec
from snapline.workload import WORKLOADS
from snapline.workload.common.answers import AnswerColumns

SPAN = 1 << 40
RIGHT = Batch.of(key=[1, 1, 2], window=[0, SPAN, 0], count=[5, 6, 7], time=[100, 200, 300])
ANSWER = AnswerColumns("out", ("key", "window"), ("count",))
COUNTS = AnswerColumns("out", ("key",), ("count",), replaces=True)
ANSWERED = [name for name, workload in WORKLOADS.items() if workload.answer is not None]


def held(answer, found, written, from_ms=0, right=RIGHT):
    return deviation_of(answer, right, found, np.array(written, np.int64), from_ms)


def test_rows_are_paired_by_all_columns_of_their_identity():
    found = Batch.of(key=[2, 1, 1], window=[0, SPAN, 0], count=[7, 6, 8], time=[0, 0, 0])
    off = held(ANSWER, found, [1, 2, 3])
    assert off.columns["count"].largest == 3
    assert off.columns["count"].wrong == pytest.approx(1 / 3)
    assert (off.missing, off.repeated, off.unexpected) == (0, 0, 0)


def test_a_row_with_an_unknown_identity_belongs_to_nobody():
    found = Batch.of(key=[3, 1], window=[0, 7], count=[7, 6], time=[0, 0])
    off = held(ANSWER, found, [1, 2])
    assert (off.unexpected, off.missing) == (2, 1.0)


def test_of_rows_that_replace_each_other_the_last_one_is_the_answer():
    """Key 1 counts to 6, is lost at 300 ms, and begins anew; key 2 was complete before that."""
    right = Batch.of(key=[1, 2], count=[8, 2], time=[500, 150])
    found = Batch.of(key=[1, 2, 2, 1, 1, 1], count=[5, 1, 2, 6, 1, 2])
    off = held(COUNTS, found, [100, 100, 150, 200, 400, 400], 300, right)
    assert (off.rows, off.came) == (1, 1)
    assert off.columns["count"].largest == 6


def test_a_count_that_stopped_short_when_its_slot_died_is_wrong_when_the_right_one_is_due():
    """Key 1 stops at 6 of 8, before the fault at 300 ms. Key 2 was complete by then, key 3 goes on."""
    right = Batch.of(key=[1, 2, 3], count=[8, 2, 4], time=[500, 150, 600])
    found = Batch.of(key=[1, 2, 2, 1, 3], count=[5, 1, 2, 6, 4])
    off = held(COUNTS, found, [100, 100, 150, 200, 650], 300, right)
    assert (off.rows, off.came, off.missing) == (2, 2, 0)
    assert (off.columns["count"].largest, off.columns["count"].wrong) == (2, 0.5)
    assert off.right_again_s == pytest.approx(0.2)


def test_a_count_that_was_on_its_way_when_the_slot_died_is_wrong_from_the_fault_on():
    """Its last record was due 10 ms before the fault, and is lost with the slot. Nothing comes later."""
    right = Batch.of(key=[1, 2], count=[8, 2], time=[290, 150])
    off = held(COUNTS, Batch.of(key=[1, 2], count=[7, 2]), [280, 150], 300, right)
    assert (off.rows, off.came, off.columns["count"].largest) == (1, 1, 1)
    assert off.right_again_s is None


def test_a_count_is_wrong_until_it_is_due_even_if_it_stopped_after_the_fault():
    right = Batch.of(key=[1, 2], count=[8, 2], time=[500, 600])
    off = held(COUNTS, Batch.of(key=[1, 2], count=[7, 2]), [400, 650], 300, right)
    assert off.right_again_s == pytest.approx(0.2)


def test_an_answer_that_is_right_before_the_fault_and_stays_so_is_right():
    """Of key 1 another row was due after the fault, with the same number: nobody misses it."""
    highest = AnswerColumns("out", ("key",), ("price",), replaces=True)
    right = Batch.of(key=[1, 2], price=[8, 2], time=[500, 150])
    off = held(highest, Batch.of(key=[1, 2], price=[8, 2]), [200, 150], 300, right)
    assert (off.rows, off.came) == (1, 1)
    assert off.is_zero
    assert off.right_again_s == 0


def test_a_count_that_stopped_short_counts_where_no_column_says_when_it_was_due():
    right = Batch.of(key=[1, 2], count=[8, 2])
    off = held(COUNTS, Batch.of(key=[1, 2], count=[6, 2]), [200, 150], 300, right)
    assert (off.rows, off.columns["count"].largest) == (1, 2)


def test_an_answer_whose_rows_cannot_be_told_apart_is_refused():
    with pytest.raises(UsageError, match="cannot be told apart by key"):
        held(AnswerColumns("out", ("key",), ("count",)), RIGHT, [1, 2, 3])


def test_nan_is_an_identity_like_any_other():
    """Floats may be none at all. A row with that in its identity is no copy of one that nobody knows."""
    measured = AnswerColumns("out", ("key",), ("count",))
    right = Batch.of(key=[1.0, np.nan], count=[1, 2])
    off = held(measured, Batch.of(key=[7.0], count=[2]), [1], right=right)
    assert (off.rows, off.missing, off.repeated, off.unexpected) == (2, 1.0, 0, 1)
    assert held(measured, right, [1, 2], right=right).is_zero
    again = Batch.of(key=[np.nan, np.nan, 0.0], count=[2, 2, 0])
    off = held(measured, again, [1, 2, 3], right=right)
    assert (off.missing, off.repeated, off.unexpected) == (0.5, 0.5, 1)


def test_counts_of_nan_replace_each_other():
    right = Batch.of(key=[np.nan], count=[3])
    off = held(COUNTS, Batch.of(key=[np.nan] * 3, count=[1, 2, 3]), [1, 2, 3], right=right)
    assert (off.rows, off.came, off.is_zero) == (1, 1, True)


def test_two_rows_without_a_number_in_their_identity_cannot_be_told_apart():
    right = Batch.of(key=[np.nan, np.nan], count=[1, 2])
    with pytest.raises(UsageError, match="cannot be told apart by key"):
        held(AnswerColumns("out", ("key",), ("count",)), right, [1, 2], right=right)


@pytest.mark.parametrize("column", ["nobody", "name"])
def test_an_answer_that_is_no_column_of_numbers_is_refused(column):
    named = RIGHT.with_columns(name=Batch.of(n=["a", "b", "c"])["n"])
    with pytest.raises(UsageError, match=f"'{column}' is "):
        held(AnswerColumns("out", ("key", "window"), (column,)), named, [1, 2, 3], right=named)


def test_nothing_came_and_nothing_was_expected():
    nothing = Batch({}, 0)
    assert held(ANSWER, nothing, []).missing == 1.0
    assert held(ANSWER, nothing, [], right=nothing).is_zero
    assert held(ANSWER, RIGHT, [1, 2, 3], right=nothing).unexpected == 3


@pytest.mark.parametrize("name", ANSWERED)
def test_what_a_workload_calls_right_is_what_comes_out_without_failures(name):
    """Also where an oracle computes it: both ways to know it agree, to the last row."""
    spec = Spec(name, slots=2, rate=300, duration_ms=3_000, size="small")
    program = find_program(spec)
    known = program.answer
    assert known.right is not None
    right = right_answer(known.answer, program.flow, 2, known.right)
    plain = right_answer(known.answer, program.flow, 2, None)
    off = held(known.answer, plain, np.zeros(len(plain)), right=right)
    assert off.is_zero, off
    assert off.rows == len(right) > 5
    off = held(
        known.answer, plain.slice(0, len(plain) // 2), np.zeros(len(plain) // 2), right=right
    )
    assert not off.is_zero


def test_which_workloads_name_an_answer():
    assert {"counting", "q1", "q5", "q6", "q7", "q12"} <= {*ANSWERED}
