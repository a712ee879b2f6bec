"""Partial fault tolerance on a real Spark: only the lost slot restarts, and what it lost is judged.

The whole matrix takes ten minutes on two cores: `./dev test -m slow tests/spark/test_partial_on_spark.py`.
"""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from run_helpers import assert_usable_and_empty, happenings, only

from snapline.journal.fault_happenings import CoordinatorKilled, CoordinatorResumed
from snapline.journal.happenings import (
    JobRunning,
    LineDecided,
    SlotLost,
    SlotRestored,
    SlotRunning,
)
from snapline.journal.loss_happenings import TaskLoss
from snapline.rundir.spec import Spec
from snapline.runs.run import run
from snapline.runtime.driver.driver import Timeouts
from snapline.workload import WORKLOADS

pytestmark = pytest.mark.spark

FEW_RECORDS = {"reachability": 40, "nhop": 100}
PLANS = {
    "three kills, one in a restore": (
        "kill slot=1 at=1500ms; kill slot=1 on=recovery; kill slot=0 at=4s"
    ),
    "a zombie": "pause slot=1 at=1500ms for=4s",
    "both slots at once": "kill slot=0,1 at=2s",
    "a slot that is away": "kill slot=1 at=2s for=3s",
}
DAMAGED = "damage slot=1 at=1999ms; kill slot=1 at=2s"
STATELESS = ("q1",)


def spec_of(workload: str, faults: str, **more) -> Spec:
    return Spec(
        workload,
        protocol="partial",
        guarantee="bounded-loss",
        slots=2,
        rate=FEW_RECORDS.get(workload, 1_000),
        duration_ms=7_000,
        interval_ms=300,
        size="small",
        faults=faults,
        **more,
    )


@pytest.fixture
def session(spark) -> Iterator[SparkSession]:
    yield spark
    assert_usable_and_empty(spark)


def test_only_the_lost_slot_restarts_and_the_loss_is_bounded(session, tmp_path):
    finished = run(spec_of("q12", "kill slot=1 at=2s for=1s"), session, runs=tmp_path)
    assert finished.verdict.kept == "yes", finished.verdict
    assert finished.verdict.guarantees["bounded-loss"] == "yes"
    found = happenings(finished.directory.path / "journal")
    assert [entry.what.slot for entry in only(found, SlotLost)] == [1]
    assert [entry.actor for entry in only(found, SlotRunning)] == ["slot/1"]
    restored = [(entry.actor, entry.what.incarnation) for entry in only(found, SlotRestored)]
    assert sorted(restored) == [("slot/0", 1), ("slot/1", 1), ("slot/1", 2)]
    assert len(only(found, JobRunning)) == 1, "nobody but the lost slot was let go again"
    assert {entry.what.epoch for entry in only(found, LineDecided)} == {1}
    assert {e.what.task.rpartition("/")[2] for e in only(found, TaskLoss)} == {"1"}


def judged(session, tmp_path, workload: str, faults: str, **more) -> None:
    timeouts = Timeouts(silence_s=1.5) if "pause" in faults else None
    finished = run(spec_of(workload, faults, **more), session, runs=tmp_path, timeouts=timeouts)
    assert finished.verdict.kept == "yes", finished.verdict


@pytest.mark.slow
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_loss_stays_within_its_bound_however_a_run_is_broken(session, tmp_path, workload, plan):
    judged(session, tmp_path, workload, PLANS[plan])


@pytest.mark.slow
@pytest.mark.parametrize("workload", [w for w in WORKLOADS if w not in STATELESS])
def test_a_damaged_checkpoint_costs_one_interval_more(session, tmp_path, workload):
    judged(session, tmp_path, workload, DAMAGED)


@pytest.mark.slow
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("intake", ["wait:200", "keep"])
def test_input_of_a_lost_slot_may_wait_or_be_kept(session, tmp_path, intake, plan):
    judged(session, tmp_path, "q12", PLANS[plan], inputs=(("count", intake),))


@pytest.mark.slow
@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_run_whose_driver_is_killed_is_resumed_and_loses_what_its_bound_allows(
    tmp_path, workload
):
    """In processes of its own: the driver that dies is the whole program."""
    spec = spec_of(workload, "kill driver at=2s; kill slot=1 at=4s")
    command = [sys.executable, "-m", "snapline", "run", workload, "--protocol", "partial"]
    command += ["--slots", "2", "--rate", str(spec.rate), "--duration", "7s", "--interval", "300ms"]
    command += ["--size", "small", "--faults", spec.faults, "--runs", str(tmp_path), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    result = json.loads(done.stdout)
    assert (done.returncode, result["kept"]) == (0, "yes"), result
    found = happenings(tmp_path, "*/journal/driver-*")
    assert len(only(found, CoordinatorKilled)) == len(only(found, CoordinatorResumed)) == 1
