"""When staged records are due: at their times, at a rate, or all at once; and where they are cut off."""

import numpy as np
import pytest

from snapline.batch import Batch
from snapline.core.messages import END_OF_TIME
from snapline.storage.files.ingress import PacedIngress, describe_ingress, write_segment

FIRST = 1_700_000_000_000
TIMES = ([0, 10, 10, 40], [5, 20, 1_000])


@pytest.fixture
def place(tmp_path):
    segments = []
    for partition, times in enumerate(TIMES):
        batches = [Batch({"time": np.array([time], np.int64) + FIRST}) for time in times]
        segments.append([write_segment(tmp_path, partition, 0, batches)])
    describe_ingress(tmp_path, {"time": "int64"}, segments)
    return tmp_path


def due_of(ingress):
    return [
        [ingress.due_ms(partition, offset) for offset in range(ingress.end(partition))]
        for partition in range(ingress.partitions)
    ]


def assert_due_through_agrees(ingress):
    due = due_of(ingress)
    for partition, own in enumerate(due):
        for now in (-1, 0, 1, 4, 5, 9, 10, 19, 20, 39, 40, 99, 100, 200, 999, 1_000, 10_000):
            expected = sum(each <= now for each in own)
            assert ingress.due_through(partition, now) == expected, (partition, now)
            assert ingress.due_at_least(partition, now) <= expected


def test_without_a_rate_a_record_is_due_at_its_time_from_the_earliest_on(place):
    ingress = PacedIngress(place, None)
    assert due_of(ingress) == [list(times) for times in TIMES]
    assert_due_through_agrees(ingress)
    assert ingress.watermark(1, 1) == FIRST + 20
    assert ingress.watermark(1, 3) == END_OF_TIME


def test_at_a_rate_records_are_due_by_their_numbers_over_all_partitions(place):
    ingress = PacedIngress(place, 10)
    assert due_of(ingress) == [[0, 200, 400, 600], [100, 300, 500]]
    assert_due_through_agrees(ingress)
    assert ingress.watermark(1, 1) == FIRST + 20


def test_at_max_all_are_due_at_once(place):
    ingress = PacedIngress(place, "max")
    assert due_of(ingress) == [[0, 0, 0, 0], [0, 0, 0]]
    assert_due_through_agrees(ingress)


@pytest.mark.parametrize(("pace", "ends"), [(None, [3, 2]), (100, [2, 2]), ("max", [4, 3])])
def test_what_is_not_due_in_time_does_not_belong_to_it(place, pace, ends):
    ingress = PacedIngress(place, pace, 40)
    assert [ingress.end(partition) for partition in (0, 1)] == ends
    for partition, end in enumerate(ends):
        assert len(ingress.read(partition, 0, 100)) == end
        assert ingress.due_through(partition, 10_000) == end
        assert ingress.watermark(partition, end) == END_OF_TIME


def test_inputs_that_are_due_differently_are_different_inputs(place):
    said = {
        PacedIngress(place, pace, cut).identity for pace in (None, 10, "max") for cut in (None, 40)
    }
    assert len(said) == 6


def test_records_without_a_time_are_due_at_a_rate(tmp_path):
    rows = Batch({"n": np.arange(5)})
    describe_ingress(tmp_path, rows.schema, [[write_segment(tmp_path, 0, 0, [rows])], []])
    ingress = PacedIngress(tmp_path, "max")
    assert ingress.schema == {"n": "int64"}
    assert (ingress.end(0), ingress.end(1)) == (5, 0)
    assert ingress.due_through(0, 0) == 5
    assert ingress.watermark(0, 0) == 0
    assert ingress.watermark(1, 0) == END_OF_TIME
