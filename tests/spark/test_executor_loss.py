"""A whole run on a cluster of executors, one of which is killed: its slots live again on another."""

import os
import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession
from run_helpers import assert_dead, commits, happenings, only, slot_processes
from spark_slots import eventually

from snapline.runtime.run import run
from snapline.runtime.spark import own_session
from snapline.runtime.spec import Spec

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkSession]:
    """Three executors of one core each: two slots, and room for one that moves."""
    session = own_session(slots=2, master="local-cluster[3,1,1024]")
    # Spark keeps the logs of a local cluster's executors inside its own installation.
    work = Path(pyspark.__file__).parent / "work" / str(session.sparkContext.applicationId)
    yield session
    session.stop()
    shutil.rmtree(work, ignore_errors=True)


class Killer(threading.Thread):
    """Kills the executor of a slot once a line was committed."""

    def __init__(self, runs: Path, java: int) -> None:
        super().__init__(daemon=True)
        self.runs, self.java = runs, java
        self.killed: tuple[int, int] | None = None  #: the executor and the slot's process under it

    def run(self) -> None:
        eventually(
            lambda: any(map(commits, happenings(self.runs, "*/journal/driver-*"))),
            "a committed line",
        )
        worker, executor = next(iter(slot_processes(self.java).items()))
        os.kill(executor, signal.SIGKILL)
        self.killed = (executor, worker)


@pytest.mark.parametrize("protocol", ["aligned", "uncoordinated"])
def test_the_slots_of_a_killed_executor_move_and_every_record_counts_once(
    cluster, tmp_path, protocol
):
    killer = Killer(tmp_path, cluster.sparkContext._gateway.proc.pid)
    killer.start()
    spec = Spec("q12", protocol, rate=1_000, duration_ms=6_000, interval_ms=400)
    finished = run(spec, cluster, runs=tmp_path)
    killer.join()
    assert killer.killed is not None, "the run was over before a line was committed"
    assert_dead(killer.killed)
    assert finished.verdict.kept == "yes", finished.verdict
    found = happenings(finished.directory.path / "journal", "driver-*")
    (lost, *_) = only(found, "lost")
    assert any(map(commits, found[: found.index(lost)])), "a line was committed before"
    assert only(found, "running")[-1].epoch > only(found, "running")[0].epoch
