"""The whole matrix: every protocol on every workload that it can run, broken in four ways; on a real Spark.

It takes a quarter of an hour on two cores: `./dev test -m slow tests/spark/test_matrix.py --dist load`.
"""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from run_helpers import assert_dead, assert_usable_and_empty, commits, happenings, only
from scripted_faults import (
    PATIENT,
    Script,
    Step,
    checkpointing,
    committed,
    kill,
    lost,
    outage,
    stop_until_lost,
    store_away,
)

from held_input import Hold
from snapline.dataflow.deploy import deploy
from snapline.journal.fault_happenings import ProcessKilled, ProcessPaused
from snapline.journal.happenings import JobRunning
from snapline.protocols import PROTOCOLS, refusal
from snapline.rundir.program import find_program
from snapline.rundir.spec import Spec
from snapline.runs.run import run
from snapline.runtime.driver.driver import Timeouts
from snapline.workload import WORKLOADS

pytestmark = [pytest.mark.spark, pytest.mark.slow]

INPUT_MS = 3_500
FEW_RECORDS = {"reachability": 40, "nhop": 100}
"""Records per second, where every one of them sets many others going."""
PLANS = {
    "three kills": [Step(committed, kill(1)), Step(lost, kill(0)), Step(committed, kill(1))],
    "in a round, and a zombie": [
        Step(checkpointing, kill(1)),
        Step(committed, stop_until_lost(0, 300)),
    ],
    "two of three slots": [Step(committed, kill(1, 2)), Step(committed, kill(0, 1))],
    "while the store is away": [Step(committed, store_away(1_500)), Step(outage, kill(1))],
}


def cases() -> Iterator[tuple[str, str, str]]:
    for workload in WORKLOADS:
        topology = deploy(find_program(Spec(workload), None).flow, 2, lean=True).topology
        for name, protocol in PROTOCOLS.items():
            if not protocol.publishes_at_once and refusal(protocol, topology) is None:
                yield from ((workload, name, plan) for plan in PLANS)


@pytest.fixture
def session(spark) -> Iterator[SparkSession]:
    """Whatever a run went through, the session stays usable and no slot stays in it."""
    yield spark
    assert_usable_and_empty(spark)


@pytest.mark.parametrize(("workload", "protocol", "plan"), list(cases()))
def test_every_protocol_keeps_its_promise_on_every_workload_however_it_is_broken(
    session, tmp_path, monkeypatch, record_property, workload, protocol, plan
):
    spec = Spec(
        workload,
        protocol=protocol,
        slots=3 if "three slots" in plan else 2,
        rate=FEW_RECORDS.get(workload, 1_000),
        duration_ms=INPUT_MS,
        interval_ms=300,
        size="small",  # the run is short: windows close in it, and paths are found
    )
    script = Script(PLANS[plan], Hold(tmp_path))
    script.install(monkeypatch)
    timeouts = Timeouts(silence_s=1.5) if "zombie" in plan else PATIENT
    finished = run(spec, session, runs=tmp_path, timeouts=timeouts)
    assert script.struck == script.steps
    assert finished.verdict.kept == "yes", finished.verdict
    found = happenings(finished.directory.path / "journal", "driver-*")
    signals = [entry for entry in found if isinstance(entry.what, ProcessKilled | ProcessPaused)]
    record_property("signals", len(signals))
    assert_dead(entry.what.pids[0] for entry in signals)
    last = found.index(signals[-1])
    assert only(found[last:], JobRunning)[-1].epoch > only(found, JobRunning)[0].epoch
    assert any(map(commits, found[last:])), "the run went on"
