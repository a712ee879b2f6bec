"""Deviation, against small answers whose figures were computed by hand."""

import math

import numpy as np
import pytest

from snapline.metrics.deviation import UNEXPECTED, AnswerRows, deviation


def rows(*given, column="x"):
    """Rows of (number, at_ms, value)."""
    number, at_ms, values = zip(*given, strict=True) if given else ((), (), ())
    numbers, times = np.array(number, np.int64), np.array(at_ms, np.int64)
    return AnswerRows(numbers, times, {column: np.array(values, np.float64)})


RIGHT = rows((0, 100, 10.0), (1, 200, 20.0), (2, 300, 30.0), (3, 400, 40.0))


def test_what_is_as_it_should_be_has_no_deviation():
    found = deviation(RIGHT, rows((3, 410, 40.0), (0, 110, 10.0), (1, 210, 20.0), (2, 310, 30.0)))
    assert found.is_zero
    assert (found.rows, found.came, found.missing, found.repeated) == (4, 4, 0.0, 0.0)
    assert found.right_again_s == 0.0
    assert found.columns["x"].rmse == found.columns["x"].largest == found.columns["x"].wrong == 0
    assert found.columns["x"].typical == 25.0


def test_errors_are_measured_from_the_first_fault_on():
    """Of rows 1, 2 and 3 one is off by 3 and one by -4; row 0, off by 90, was written before the fault."""
    came = rows((0, 110, 100.0), (1, 250, 23.0), (2, 350, 26.0), (3, 450, 40.0))
    found = deviation(RIGHT, came, from_ms=150)
    assert (found.rows, found.came) == (3, 3)
    column = found.columns["x"]
    assert column.rmse == pytest.approx(math.sqrt((9 + 16 + 0) / 3))
    assert (column.p50, column.p90, column.p99, column.largest) == (3.0, 4.0, 4.0, 4.0)
    assert column.wrong == pytest.approx(2 / 3)
    assert column.typical == 30.0
    assert found.right_again_s == pytest.approx(0.2)  # row 2, written at 350 ms
    assert not found.is_zero


def test_missing_rows_are_wrong_until_they_were_due():
    found = deviation(RIGHT, rows((0, 110, 10.0), (3, 450, 40.0)), from_ms=150)
    assert found.missing == pytest.approx(2 / 3)
    assert found.right_again_s == pytest.approx(0.15)  # row 2, due at 300 ms
    assert found.columns["x"].wrong == 0
    assert not found.is_zero


def test_output_that_is_wrong_to_the_end_is_never_right_again():
    found = deviation(RIGHT, rows((0, 110, 10.0), (1, 210, 20.0), (2, 310, 31.0)))
    assert (found.missing, found.right_again_s) == (0.25, None)


def test_rows_that_came_again_count_each_time():
    """Row 0 came again after the fault, row 1 twice; the second time it is off by 6."""
    came = rows(
        *((0, 110, 10.0), (0, 160, 10.0), (1, 200, 20.0), (1, 300, 26.0)),
        *((2, 310, 30.0), (3, 450, 40.0)),
    )
    found = deviation(RIGHT, came, from_ms=150)
    assert (found.rows, found.came) == (3, 5)
    assert found.repeated == pytest.approx(2 / 3)
    assert found.missing == 0
    assert found.columns["x"].rmse == pytest.approx(math.sqrt(36 / 5))
    assert found.right_again_s == pytest.approx(0.15)


def test_rows_that_nobody_expects_are_counted_and_have_no_error():
    came = rows(*((n, 500 + n, 10.0 * (n + 1)) for n in range(4)), (UNEXPECTED, 400, 7.0))
    found = deviation(RIGHT, came)
    assert (found.unexpected, found.came) == (1, 5)
    assert found.right_again_s == pytest.approx(0.4)
    assert found.columns["x"].wrong == 0
    assert not found.is_zero


def test_fractions_that_were_added_in_another_order_are_right():
    right = rows((0, 1, 0.3), (1, 2, 1e18))
    assert deviation(right, rows((0, 1, 0.1 + 0.2), (1, 2, 1e18 + 256))).is_zero
    assert not deviation(right, rows((0, 1, 0.3 + 1e-8), (1, 2, 1e18))).is_zero


def test_what_is_no_number_is_wrong_and_spoils_no_other_figure():
    right = rows((0, 1, 5.0), (1, 2, math.nan), (2, 3, 5.0))
    column = deviation(right, rows((0, 1, math.nan), (1, 2, math.nan), (2, 3, 7.0))).columns["x"]
    assert column.wrong == pytest.approx(2 / 3)
    assert column.rmse == pytest.approx(math.sqrt((0 + 4) / 2))
    assert (column.largest, column.typical) == (2.0, 5.0)


def test_an_answer_of_which_nothing_came_is_all_missing():
    found = deviation(RIGHT, rows())
    assert (found.missing, found.right_again_s, found.columns) == (1.0, None, {})


def test_an_answer_that_was_complete_before_the_fault_has_no_deviation():
    early = rows(*((n, 10 + n, 10.0 * (n + 1)) for n in range(4)))
    found = deviation(RIGHT, early, from_ms=1_000)
    assert found.is_zero
    assert (found.rows, found.came) == (0, 0)


def test_one_number_for_all_counts_missing_rows_as_off_by_a_typical_value():
    """Of four rows two came right, one is off by 30 where 30 is typical, and one is missing."""
    found = deviation(RIGHT, rows((0, 110, 10.0), (1, 210, 20.0), (2, 310, 60.0)))
    typical = (10 + 20 + 30) / 3
    assert found.overall == pytest.approx(math.sqrt((30 / typical) ** 2 / 4 + 1 / 4))
    assert deviation(RIGHT, rows()).overall == 1.0
    assert deviation(RIGHT, RIGHT).overall == 0.0
