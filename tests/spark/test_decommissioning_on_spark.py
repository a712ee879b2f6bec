"""A worker of a standalone cluster is decommissioned: its slots leave with a line, its executor ends."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from run_helpers import commits, happenings, only
from scripted_faults import PATIENT, Deed, Script, Step, committed, running
from spark_slots import eventually, lives, parent_of
from standalone import cluster

from held_input import Hold
from snapline.ids import SlotId
from snapline.journal.happenings import JobRunning, LineDecided, SlotLeaving, SlotLeft, SlotLost
from snapline.rundir.spec import Spec
from snapline.runs.run import run
from snapline.runtime.driver.inject import RunInjector, executor_of
from snapline.spark.slot_jobs import own_session

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ENABLED = {"spark.decommission.enabled": "true"}


@pytest.fixture
def session(tmp_path: Path) -> Iterator[tuple[SparkSession, list[int]]]:
    """A session on two workers of two cores each, which can be decommissioned, and their processes."""
    place = tmp_path / "cluster"
    place.mkdir()
    options = " ".join(f"-D{name}={value}" for name, value in ENABLED.items())
    with cluster(place, SPARK_WORKER_OPTS=options) as (master, workers):
        spark = own_session(slots=2, master=master, settings=ENABLED)
        yield spark, workers
        spark.stop()


def decommission(slot: SlotId, workers: list[int], ended: list[int]) -> Deed:
    """SIGPWR to the worker whose executor hosts a slot; that executor is among those that have to end."""

    def deed(injector: RunInjector) -> None:
        pid = injector.run.processes.pid(slot)
        assert pid is not None
        executor = executor_of(pid)
        assert executor is not None
        assert parent_of(executor) in workers
        ended.append(executor)
        os.kill(parent_of(executor), signal.SIGPWR)

    return deed


def test_the_slots_of_a_decommissioned_worker_leave_with_a_line_and_its_executor_ends(
    session, tmp_path, monkeypatch
):
    spark, workers = session
    ended: list[int] = []
    steps = [
        Step(committed, decommission(1, workers, ended)),
        Step(running, lambda injector: None),  # its successor goes on, and so does the input
    ]
    script = Script(steps, Hold(tmp_path))
    script.install(monkeypatch)
    spec = Spec("q12", rate=500, duration_ms=4_000, interval_ms=300)
    finished = run(spec, spark, runs=tmp_path, timeouts=PATIENT)
    assert script.struck == script.steps
    assert finished.verdict.kept == "yes", finished.verdict
    found = happenings(finished.directory.path / "journal", "driver-*")
    left = only(found, SlotLeft)
    assert only(found, SlotLost) == []
    assert 1 in [entry.what.slot for entry in left]
    told = sorted(entry.what.slot for entry in only(found, SlotLeaving))
    assert told == sorted(entry.what.slot for entry in left), "each is told once"
    lines = [entry for entry in found if isinstance(entry.what, LineDecided | SlotLeft)]
    assert commits(lines[lines.index(left[0]) - 1]), "a line just before it left"
    assert only(found, JobRunning)[-1].epoch > left[-1].epoch
    for executor in ended:
        eventually(lambda pid=executor: not lives(pid), "the end of the executor")
