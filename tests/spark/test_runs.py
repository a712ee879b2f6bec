"""Whole runs on a real Spark, broken by real signals, and judged by the oracle."""

import json
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
from scripted_faults import (
    PATIENT,
    Script,
    Step,
    committed,
    kill,
    lost,
    replayable,
    stop_until_lost,
)
from spark_slots import eventually

from held_input import Hold
from snapline.cli.app import main
from snapline.journal.fault_happenings import (
    CoordinatorKilled,
    CoordinatorResumed,
    ProcessKilled,
    ProcessPaused,
)
from snapline.journal.happenings import JobRunning, LineDecided, MessageReplayed, SlotLost
from snapline.protocols import PROTOCOLS
from snapline.rundir.lines.kept import kept_lines
from snapline.rundir.spec import Spec
from snapline.runs.run import fork, resume, run
from snapline.runtime.driver.driver import Timeouts
from snapline.spark import generate as generate_module
from snapline.spark import slot_jobs as spark_module

pytestmark = pytest.mark.spark

CHECKPOINTING = [name for name, protocol in PROTOCOLS.items() if not protocol.publishes_at_once]
CYCLIC = [name for name in CHECKPOINTING if PROTOCOLS[name].cycles]
LOGGING = ("uncoordinated", "hmnr", "bcs")
MATRIX = [
    *(("q12", name) for name in CHECKPOINTING),
    *(("q3", name) for name in CHECKPOINTING),
    *(("reachability", name) for name in CYCLIC),
]
INPUT_MS = 3_500


def three_kills(protocol: str) -> list[Step]:
    """When a line is committed, in the recovery, and when another is; a log must have something to do."""
    moment = replayable if protocol in LOGGING else committed
    return [Step(moment, kill(1)), Step(lost, kill(0)), Step(moment, kill(1))]


@pytest.fixture
def session(spark) -> Iterator[SparkSession]:
    """The user's session: whatever a run went through, it stays usable and no slot stays in it."""
    assert_usable_and_empty(spark)
    yield spark
    assert_usable_and_empty(spark)


@pytest.mark.parametrize(("workload", "protocol"), MATRIX)
def test_a_kill_one_during_recovery_and_another_leave_every_record_exactly_once(
    session, tmp_path, monkeypatch, workload, protocol
):
    spec = Spec(
        workload,
        protocol=protocol,
        rate=40 if workload == "reachability" else 1_000,
        duration_ms=INPUT_MS,
        interval_ms=300,
        spares=1 if workload == "q3" else 0,
        size="small" if workload == "reachability" else "full",  # in full, few links have no path
    )
    script = Script(three_kills(protocol), Hold(tmp_path))
    script.install(monkeypatch)
    finished = run(spec, session, runs=tmp_path, timeouts=PATIENT)
    assert script.struck == script.steps
    assert finished.verdict.kept == "yes", finished.verdict
    found = happenings(finished.directory.path / "journal")
    killed, losses = only(found, ProcessKilled), only(found, SlotLost)
    assert [kill.actor for kill in killed] == ["slot/1", "slot/0", "slot/1"]
    pids = [kill.what.pids[0] for kill in killed]
    assert finished.metrics["killed_pids"] == pids
    assert len(set(pids)) == 3
    assert_dead(pids)
    assert [loss.what.slot for loss in losses] == [1, 0, 1]
    first, second, third = (found.index(kill) for kill in killed)
    assert any(map(commits, found[:first])), "a line was committed before"
    assert not only(found[first:second], JobRunning), "the second kill came during recovery"
    assert any(map(commits, found[third:])), "the run went on"
    running = [entry.epoch for entry in only(found, JobRunning)]
    assert running[0] == 1
    assert running[-1] > losses[-1].epoch >= 2
    assert all(before < after for before, after in pairwise(running))
    if protocol in LOGGING:
        assert sum(len(entry.what.message.batch) for entry in only(found, MessageReplayed)) > 0


def test_a_fork_on_spark_has_the_output_before_its_line_and_that_behind_it(session, tmp_path):
    spec = Spec("q3", protocol="hmnr", rate=1_000, duration_ms=2_000, interval_ms=300)
    origin = run(spec, session, runs=tmp_path, timeouts=PATIENT)
    line = kept_lines(origin.directory)[0]
    forked = fork(origin.name, line.number, session, runs=tmp_path, timeouts=PATIENT)
    assert forked.verdict.kept == "yes", forked.verdict
    assert forked.name != origin.name
    assert forked.rows == origin.rows
    assert sorted(forked.output().collect()) == sorted(origin.output().collect())


@pytest.mark.parametrize(("workload", "column"), [("q12", "bidder"), ("q3", "auction")])
def test_without_checkpoints_a_kill_breaks_the_output_and_the_verdict_names_a_record(
    session, tmp_path, workload, column
):
    # It strikes the first life of the slot, which runs since the time is counted.
    spec = Spec(
        workload, protocol="none", rate=1_000, duration_ms=3_000, faults="kill slot=1 at=1500ms"
    )
    finished = run(spec, session, runs=tmp_path, timeouts=PATIENT)
    assert finished.verdict.kept == "no"
    assert len(finished.metrics["killed_pids"]) == 1
    assert_dead(finished.metrics["killed_pids"])
    record = finished.verdict.problems[0].record
    assert column in record
    assert record in finished.verdict.because


@pytest.mark.parametrize(
    "protocol", ["aligned", pytest.param("uncoordinated", marks=pytest.mark.slow)]
)
def test_a_slot_that_stood_still_too_long_is_replaced_and_publishes_nothing_as_a_zombie(
    session, tmp_path, monkeypatch, protocol
):
    # Slot 1 wakes as soon as it was given up, before Spark ends it; slot 0 long after.
    pauses = [Step(committed, stop_until_lost(1, 0)), Step(committed, stop_until_lost(0, 2_000))]
    script = Script(pauses, Hold(tmp_path))
    script.install(monkeypatch)
    spec = Spec("q12", protocol=protocol, rate=1_000, duration_ms=INPUT_MS, interval_ms=300)
    finished = run(spec, session, runs=tmp_path, timeouts=Timeouts(silence_s=1.5))
    assert script.struck == script.steps
    assert finished.verdict.kept == "yes", finished.verdict
    found = happenings(finished.directory.path / "journal", "driver-*")
    stopped = only(found, ProcessPaused)
    assert [entry.actor for entry in stopped] == ["slot/1", "slot/0"]
    for stop in stopped:  # it was given up in its turn, and the others went on without it
        later = found[found.index(stop) :]
        assert stop.actor in {f"slot/{loss.what.slot}" for loss in only(later, SlotLost)}
        assert only(later, JobRunning)
    assert_dead(entry.what.pids[0] for entry in stopped)


SNAPLINE = [sys.executable, "-c", "from snapline.cli.app import main; main()"]
LONG_RUN = ["--slots", "2", "--rate", "1000", "--duration", "8s", "--interval", "400ms"]


@pytest.mark.parametrize(
    "protocol", ["aligned", pytest.param("uncoordinated", marks=pytest.mark.slow)]
)
def test_a_killed_driver_leaves_no_slot_behind_and_its_run_is_resumed(session, tmp_path, protocol):
    def has_committed() -> bool:
        return any(map(commits, happenings(tmp_path, "*/journal/driver-*")))

    command = [*SNAPLINE, "run", "q12", "--protocol", protocol, *LONG_RUN, "--runs", str(tmp_path)]
    with subprocess.Popen(command) as driver:
        try:
            eventually(lambda: has_committed() or driver.poll() is not None, "a committed line")
            workers = slot_processes(driver.pid)
        finally:
            driver.kill()
    assert driver.returncode == -signal.SIGKILL, "it was killed before its run was over"
    assert len(workers) == 2
    assert_dead([*workers, *workers.values()])
    (directory,) = tmp_path.iterdir()
    assert not (directory / "result.json").exists()
    before = happenings(directory / "journal", "driver-*")

    finished = resume(directory.name, session, runs=tmp_path)
    assert finished.verdict.kept == "yes", finished.verdict
    assert finished.directory.path == directory.resolve()
    assert finished.spec.duration_ms == 8_000
    journals = sorted((directory / "journal").glob("driver-*"), key=os.path.getmtime)
    assert len(journals) == 2
    after = happenings(directory / "journal", journals[-1].stem)
    restored = next(entry for entry in after if isinstance(entry.what, LineDecided))
    last = [entry for entry in before if commits(entry)][-1]
    assert restored.what.epoch > last.what.epoch
    assert all(restored.what.line[t] >= no for t, no in last.what.line.items())
    assert any(restored.what.line.values()), "it did not begin anew"


def test_a_run_that_kills_its_driver_is_resumed_by_itself_and_judged(tmp_path):
    faults = "kill driver at=2s; kill slot=1 at=4s"
    command = [*SNAPLINE, "run", "q12", "--protocol", "uncoordinated", *LONG_RUN, "--json"]
    command += ["--runs", str(tmp_path)]
    done = subprocess.run([*command, "--faults", faults], stdout=subprocess.PIPE, check=False)
    result = json.loads(done.stdout)
    assert (done.returncode, result["kept"]) == (0, "yes")
    found = happenings(tmp_path, "*/journal/driver-*")
    (died,), (resumed,) = only(found, CoordinatorKilled), only(found, CoordinatorResumed)
    (killed,) = only(found, ProcessKilled)
    assert died.what.fault == "kill driver at=2s"
    assert died.at_us < resumed.at_us < killed.at_us, "what was still to come has come"
    assert only(found, JobRunning)[-1].epoch > killed.epoch
    assert json.loads((tmp_path / result["run"] / "run.json").read_text())["faults"] == faults


def test_input_that_was_generated_is_run_and_its_output_is_shown_by_the_commands(
    session, tmp_path, monkeypatch, capsys
):
    """Through the command line, in a Spark that is there: as under `spark-submit`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(generate_module, "own_session", lambda slots: session)
    monkeypatch.setattr(session, "stop", lambda: None, raising=False)
    monkeypatch.setattr(spark_module, "submitted_session", lambda: session)

    def snapline(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["snapline", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        told = capsys.readouterr()
        assert left.value.code == 0, told
        return told.out

    size = ("--rate", "1000", "--duration", "3s", "--slots", "2", "--seed", "3")
    snapline("generate", "q12", "--to", "in", "--format", "parquet", *size)
    faults = ("--interval", "300ms", "--faults", "kill slot=1 at=1s", "--silence", "20s")
    told = json.loads(snapline("run", "q12", "--input", "in", *faults, "--json"))
    assert told["kept"] == "yes"
    assert len(told["metrics"]["killed_pids"]) == 1
    rows = snapline("runs", "output", "last", "--limit", "100000", "--format", "json")
    assert len(rows.splitlines()) == sum(told["rows"].values()) > 0
