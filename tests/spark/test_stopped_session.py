"""A session that is stopped while a query runs in it: the query says so, and nothing hangs."""

import pytest
from test_queries import PATIENT, numbers, wait_for_rows

import snapline as sl
from snapline.errors import RunEnded
from snapline.spark.slot_jobs import own_session

pytestmark = pytest.mark.spark


def test_a_session_that_is_stopped_underneath_is_said_in_one_sentence(tmp_path):
    session = own_session(2)
    try:
        query = sl.start(numbers(), session, runs=tmp_path, **PATIENT)
        wait_for_rows(query)
    finally:
        session.stop()
    with pytest.raises(RunEnded, match="the Spark session was stopped while the run went on"):
        query.await_termination(120)
    assert not query.is_active
    assert query.run.verdict.kept == "unknown"
