"""Runs in the background: two in one session, one killed, stopped and resumed; flows that fail or end."""

import pytest
from run_helpers import happenings, only
from spark_slots import eventually

import snapline as sl
from snapline.errors import FlowFailed, UsageError
from snapline.ids import task_id
from snapline.journal.happenings import JobSuspended, SlotLost
from snapline.runs.finished import read_output

pytestmark = pytest.mark.spark

PATIENT = {"silence": "60s", "interval": "300ms", "slots": 1}


class Heard:
    """A listener that notes all that it is told."""

    def __init__(self) -> None:
        self.progress, self.losses, self.recovered, self.ends = [], [], [], []

    def on_progress(self, progress):
        self.progress.append(progress)

    def on_loss(self, loss):
        self.losses.append(loss)

    def on_recovered(self, recovered):
        self.recovered.append(recovered)

    def on_end(self, end):
        self.ends.append(end)


def numbers() -> sl.Dataflow:
    flow = sl.Dataflow("numbers")
    flow.source(sl.generated(lambda n: {"n": n}, rate=500)).sink("out")
    return flow


def ids(query) -> list[int]:
    """The numbers that are public, in order."""
    return sorted(read_output(query.directory, "aligned", [task_id("out", 0)])["n"].tolist())


def whole(found: list[int]) -> bool:
    """Whether these are all numbers up to the last, each of them once."""
    return found == list(range(len(found)))


def wait_for_rows(query, least: int = 1) -> None:
    def ready() -> bool:
        assert query.exception() is None
        return (query.last_progress or {"lines": 0})["lines"] >= least

    eventually(ready, "a committed line")


def test_two_queries_share_a_session_and_one_is_killed_stopped_and_resumed(spark, tmp_path):
    heard = Heard()
    runs = {"runs": tmp_path, **PATIENT}
    one = sl.start(numbers(), spark, faults=["kill slot=0 at=500ms"], listener=heard, **runs)
    other = sl.start("q12", spark, protocol="uncoordinated", rate=300, **runs)
    eventually(lambda: heard.losses, "a loss")
    wait_for_rows(one)
    wait_for_rows(other)
    one.stop()
    assert (one.is_active, one.exception(), one.run) == (False, None, None)
    assert one.status["message"] == "stopped with a last line"
    assert [(end.run, end.kept) for end in heard.ends] == [(one.name, None)]
    assert {loss.slot for loss in heard.losses} == {0}
    journal = happenings(one.directory.path / "journal", "driver-*")
    assert len(only(journal, JobSuspended)) == 1
    assert other.is_active
    before = ids(one)
    assert before
    assert whole(before)
    again = sl.start(numbers(), spark, resume=one.name, runs=tmp_path, silence="60s")
    assert again.id == one.id
    wait_for_rows(again)
    again.stop()
    after = ids(one)
    assert len(after) > len(before)
    assert whole(after)
    lines = other.last_progress["lines"]
    wait_for_rows(other, lines + 1)
    with pytest.raises(UsageError, match="goes on"):
        other.judge()
    other.stop()
    assert other.exception() is None
    assert other.judge().kept == "yes"
    assert one.judge().kept == "unknown"  # it has no oracle ...
    assert (
        one.judge(reference=True).kept == "yes"
    )  # ... but can be held against runs without failures
    assert not only(happenings(other.directory.path / "journal", "driver-*"), SlotLost)


def test_a_flow_that_fails_is_the_exception_of_its_query(spark, tmp_path):
    flow = sl.Dataflow("fails")
    made = flow.source(sl.generated(lambda n: {"n": n}, rate=100))

    def fails(batch: sl.Batch) -> sl.Batch:
        raise ZeroDivisionError("on purpose")

    made.map(fails).sink("out")
    query = sl.start(flow, spark, runs=tmp_path, **PATIENT)
    with pytest.raises(FlowFailed, match="ZeroDivisionError"):
        query.await_termination(240)
    assert isinstance(query.exception(), FlowFailed)


def test_a_query_over_a_dataframe_comes_to_its_end(spark, tmp_path):
    flow = sl.Dataflow("rows")
    flow.source(spark.range(100).withColumnRenamed("id", "n")).sink("out")
    query = sl.start(flow, spark, runs=tmp_path, **PATIENT)
    assert query.await_termination(240)
    assert query.run.rows == {"out": 100}
