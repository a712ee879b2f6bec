"""A whole run on a cluster of executors, one of which is killed: its slots live again on another."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession
from run_helpers import assert_dead, commits, happenings, only
from scripted_faults import PATIENT, Script, Step, committed, kill_executor

from held_input import Hold
from snapline.journal.fault_happenings import ProcessKilled
from snapline.journal.happenings import JobRunning, SlotLost
from snapline.rundir.spec import Spec
from snapline.runs.run import run
from snapline.spark.slot_jobs import own_session

pytestmark = pytest.mark.spark


INPUT_MS = 4_000


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkSession]:
    """Two executors of two cores each: two slots, and room on either for one that moves."""
    session = own_session(slots=2, master="local-cluster[2,2,1024]")
    # Spark keeps the logs of a local cluster's executors inside its own installation.
    work = Path(pyspark.__file__).parent / "work" / str(session.sparkContext.applicationId)
    yield session
    session.stop()
    shutil.rmtree(work, ignore_errors=True)


@pytest.mark.parametrize("protocol", ["aligned", "uncoordinated"])
def test_the_slots_of_a_killed_executor_move_and_every_record_counts_once(
    cluster, tmp_path, monkeypatch, protocol
):
    script = Script([Step(committed, kill_executor(1))], Hold(tmp_path))
    script.install(monkeypatch)
    spec = Spec("q12", protocol=protocol, rate=1_000, duration_ms=INPUT_MS, interval_ms=300)
    finished = run(spec, cluster, runs=tmp_path, timeouts=PATIENT)
    assert script.struck == script.steps
    assert finished.verdict.kept == "yes", finished.verdict
    found = happenings(finished.directory.path / "journal", "driver-*")
    (killed,) = only(found, ProcessKilled)
    assert killed.what.fault == "kill executor=1 at=0ms"
    assert_dead([killed.what.pids[0]])
    later = found[found.index(killed) :]
    assert 1 in [loss.what.slot for loss in only(later, SlotLost)]
    assert only(later, JobRunning)[-1].epoch > killed.epoch
    assert any(map(commits, later)), "the run went on"
