"""The table of seconds: what each slot did, and what became public, from a journal made by hand."""

import numpy as np
import pytest

from metric_runs import happened, second
from snapline.ids import TaskId
from snapline.journal.happenings import JobFinished, OutputPublished
from snapline.metrics.latency import RowTimes
from snapline.metrics.second import SlotSecond
from snapline.metrics.seconds_table import SecondRow, second_rows

ONE, TWO, TIMELESS = TaskId("out/0"), TaskId("out/1"), TaskId("plain/1")


def measured(at_s, *slots):
    made = second(at_s, backlog=7, slots=tuple(slots))
    return happened(at_s + 1, made.measured())


JOURNAL = [
    measured(0, SlotSecond(0, 600, 500, 4, 10.0, 20.0), SlotSecond(1, 400, 500, 3, 30.0, 40.0)),
    happened(1.0, OutputPublished(1, {ONE: (0, 2), TWO: (0, 1)})),
    happened(1.5, OutputPublished(2, {ONE: (2, 3), TIMELESS: (0, 5)})),
    measured(1, SlotSecond(0, 1000, 1000, 7, 10.0, 20.0)),
    measured(2),
    happened(3.5, OutputPublished(3, {TWO: (1, 2)})),
    happened(3.6, JobFinished()),
]
TIMES = {
    ONE: RowTimes(np.array([900, 500, 1300])),
    TWO: RowTimes(np.array([100, 3400])),
}


def test_there_is_a_row_for_all_slots_and_one_for_each_in_every_second():
    rows = list(second_rows(JOURNAL, TIMES))
    assert [(row.second, row.slot) for row in rows] == [
        *[(0, None), (0, 0), (0, 1)],
        *[(1, None), (1, 0), (1, 1)],
        (2, None),
        *[(3, None), (3, 1)],
    ]
    assert rows[0][2:6] == (2, 1000, 1000, 7)
    assert rows[2] == SecondRow(0, 1, None, 400, 500, 3, 30.0, 40.0, 0, None, None)
    assert rows[5][2:8] == (None,) * 6, "it published, and did not say what else it did"
    assert rows[7][2:8] == (None,) * 6


def test_what_was_published_counts_in_the_second_of_its_publication():
    rows = {(row.second, row.slot): row for row in second_rows(JOURNAL, TIMES)}
    published = {key: row.published for key, row in rows.items()}
    assert {key: count for key, count in published.items() if count} == {
        (1, None): 9,
        (1, 0): 3,
        (1, 1): 6,
        (3, None): 1,
        (3, 1): 1,
    }
    # Ages when they became public: 100, 500 and 200 ms of slot 0, 900 ms of slot 1; five rows have no time.
    assert rows[1, 0].published_p50_ms == pytest.approx(200, rel=0.02)
    assert rows[1, 0].published_p99_ms == pytest.approx(500, rel=0.02)
    assert rows[1, 1].published_p50_ms == pytest.approx(900, rel=0.02)
    assert rows[1, None].published_p99_ms == pytest.approx(900, rel=0.02)
    assert rows[3, None].published_p50_ms == pytest.approx(100, rel=0.02)
    assert rows[2, None].published_p50_ms is None


def test_of_rows_that_were_deleted_only_the_number_is_known():
    kept = {ONE: RowTimes(np.array([1300]), first=2), TWO: RowTimes(np.array([3400]), first=1)}
    rows = {(row.second, row.slot): row for row in second_rows(JOURNAL, kept)}
    assert rows[1, 0].published == 3
    assert rows[1, 0].published_p99_ms == pytest.approx(200, rel=0.02)
    assert (rows[1, 1].published, rows[1, 1].published_p50_ms) == (6, None)
    assert rows[3, 1].published_p50_ms == pytest.approx(100, rel=0.02)
