"""Whole runs on a real Spark, broken by real signals, and judged by the oracle."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise

import pytest
from pyspark.sql import SparkSession
from run_helpers import (
    assert_dead,
    assert_usable_and_empty,
    commits,
    happenings,
    only,
    slot_processes,
)
from spark_slots import eventually

from snapline.protocols import PROTOCOLS
from snapline.runtime.driver import Timeouts
from snapline.runtime.run import run
from snapline.runtime.spark import own_session
from snapline.runtime.spec import Spec

pytestmark = pytest.mark.spark

CHECKPOINTING = [name for name, protocol in PROTOCOLS.items() if protocol.checkpoints]
LOGGING = ("uncoordinated", "hmnr", "bcs")
MATRIX = [
    *(("q12", name) for name in CHECKPOINTING),
    *(("q3", name) for name in CHECKPOINTING),
    *(("reachability", name) for name in ("aligned-cyclic", "uncoordinated")),
]
ALWAYS = (("q12", "aligned"), ("q12", "uncoordinated"))
"""Every change is tested with these; the whole matrix takes minutes: `./dev test -m slow`."""
KILLS = "kill slot=1 at=2s; kill slot=0 on=recovery; kill slot=1 at=4s"
SOON_IN_RECOVERY = 321
"""A seed with which `on=recovery` kills a millisecond after the loss: no recovery is over by then."""


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """Room for two slots, and for a spare or a process that is slow to go."""
    session = own_session(slots=2, spares=1)
    yield session
    session.stop()


@pytest.fixture
def session(spark) -> Iterator[SparkSession]:
    """The user's session: whatever a run went through, it stays usable and no slot stays in it."""
    assert_usable_and_empty(spark)
    yield spark
    assert_usable_and_empty(spark)


@pytest.mark.parametrize(
    ("workload", "protocol"),
    [pytest.param(*case, marks=() if case in ALWAYS else pytest.mark.slow) for case in MATRIX],
)
def test_a_kill_one_during_recovery_and_another_leave_every_record_exactly_once(
    session, tmp_path, workload, protocol
):
    rate = 40 if workload == "reachability" else 1_000
    spec = Spec(
        workload,
        protocol,
        rate=rate,
        duration_ms=5_000,
        interval_ms=400,
        faults=KILLS,
        spares=1,  # so that slot 1 lives again when it is to be killed again, however slow Spark is
        seed=SOON_IN_RECOVERY,
    )
    finished = run(spec, session, runs=tmp_path)
    assert finished.verdict.kept == "yes", finished.verdict
    found = happenings(finished.directory.path / "journal")
    killed, lost = only(found, "killed"), only(found, "lost")
    assert [(kill.actor, kill.detail["signal"]) for kill in killed] == [
        ("slot/1", signal.SIGKILL),
        ("slot/0", signal.SIGKILL),
        ("slot/1", signal.SIGKILL),
    ]
    pids = [kill.detail["pid"] for kill in killed]
    assert finished.metrics["killed_pids"] == pids
    assert len(set(pids)) == 3
    assert_dead(pids)
    assert [loss.detail["slot"] for loss in lost] == [1, 0, 1]
    first, second, third = (found.index(kill) for kill in killed)
    assert any(map(commits, found[:first])), "a line was committed before"
    assert not only(found[first:second], "running"), "the second kill came during recovery"
    assert any(map(commits, found[third:])), "the run went on"
    running = [entry.epoch for entry in only(found, "running")]
    assert running[0] == 1
    assert running[-1] > lost[-1].epoch >= 2
    assert all(before < after for before, after in pairwise(running))
    if protocol in LOGGING:
        assert sum(len(entry.detail["message"].batch) for entry in only(found, "replayed")) > 0


def test_without_checkpoints_a_kill_breaks_the_output_and_the_verdict_names_a_record(
    session, tmp_path
):
    spec = Spec("q12", "none", rate=1_000, duration_ms=4_000, faults="kill slot=1 at=2s", spares=1)
    finished = run(spec, session, runs=tmp_path)
    assert finished.verdict.kept == "no"
    assert len(finished.metrics["killed_pids"]) == 1
    assert_dead(finished.metrics["killed_pids"])
    record = finished.verdict.problems[0].record
    assert "bidder" in record
    assert record in finished.verdict.because


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["aligned", "uncoordinated"])
def test_a_slot_that_stood_still_too_long_is_replaced_and_publishes_nothing_as_a_zombie(
    session, tmp_path, protocol
):
    # Slot 1 wakes as soon as it was given up, before Spark ends it; slot 0 long after.
    pauses = "pause slot=1 at=1500ms for=1300ms; pause slot=0 at=5s for=4s"
    spec = Spec("q12", protocol, rate=1_000, duration_ms=7_000, interval_ms=400, faults=pauses)
    finished = run(spec, session, runs=tmp_path, timeouts=Timeouts(silence_s=1))
    assert finished.verdict.kept == "yes", finished.verdict
    found = happenings(finished.directory.path / "journal", "driver-*")
    stopped = only(found, "killed")
    assert [entry.detail["signal"] for entry in stopped] == [signal.SIGSTOP] * 2
    assert {loss.detail["slot"] for loss in only(found, "lost")} == {0, 1}
    assert_dead(entry.detail["pid"] for entry in stopped)


DRIVER = """
import sys
from pathlib import Path
from snapline.runtime.run import run
from snapline.runtime.spec import Spec

spec = Spec("q12", sys.argv[2], rate=1_000, duration_ms=8_000, interval_ms=400)
run(spec, runs=Path(sys.argv[1]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["aligned", "uncoordinated"])
def test_a_killed_driver_leaves_no_slot_behind_and_its_run_is_resumed(session, tmp_path, protocol):
    def committed() -> bool:
        return any(map(commits, happenings(tmp_path, "*/journal/driver-*")))

    with subprocess.Popen([sys.executable, "-c", DRIVER, str(tmp_path), protocol]) as driver:
        try:
            eventually(lambda: committed() or driver.poll() is not None, "a committed line")
            workers = slot_processes(driver.pid)
        finally:
            driver.kill()
    assert driver.returncode == -signal.SIGKILL, "it was killed before its run was over"
    assert len(workers) == 2
    assert_dead([*workers, *workers.values()])
    (directory,) = tmp_path.iterdir()
    assert not (directory / "result.json").exists()
    before = happenings(directory / "journal", "driver-*")

    finished = run(Spec("q12", protocol), session, runs=tmp_path, resume=directory.name)
    assert finished.verdict.kept == "yes", finished.verdict
    assert finished.directory.path == directory.resolve()
    assert finished.spec.duration_ms == 8_000
    journals = sorted((directory / "journal").glob("driver-*"), key=os.path.getmtime)
    assert len(journals) == 2
    after = happenings(directory / "journal", journals[-1].stem)
    restored = next(entry for entry in after if entry.what == "decided")
    last = [entry for entry in before if commits(entry)][-1]
    assert restored.detail["epoch"] > last.detail["epoch"]
    assert all(restored.detail["line"][t] >= no for t, no in last.detail["line"].items())
    assert any(restored.detail["line"].values()), "it did not begin anew"
