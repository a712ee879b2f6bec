"""Real processes are measured: what slots say of themselves adds up to what the run did."""

import pytest
from process_slots import run_processes

from snapline.cli.terminal.summary import summary
from snapline.journal.entry import Entry, Happened
from snapline.journal.fault_happenings import ProcessKilled
from snapline.journal.happenings import SecondMeasured, SlotLost
from snapline.judge.history import journal_entries
from snapline.metrics.figures import Figures, figures_of
from snapline.metrics.json_form import from_json, to_json
from snapline.metrics.second import PARTS, second_of
from snapline.rundir.directory import RunDirectory
from snapline.runs.readings import measured_seconds
from snapline.runtime.driver.timeline import published_times
from snapline.sim.run import Case, simulate


def driver_journal(directory: RunDirectory) -> list[Entry]:
    (path,) = (directory.path / "journal").glob("driver-*.jsonl")
    return journal_entries(directory, path)


def test_a_run_without_failures_reads_and_writes_every_record_once(tmp_path):
    outcome = run_processes(tmp_path, "aligned", duration_ms=1_500)
    driver = outcome.driver
    found = driver.timeline.figures({})
    records = sum(len(batch) for batch in outcome.outputs.values())
    assert found.records_read == found.records_written == records > 0
    assert found.read_again == found.written_again == 0
    seconds = driver.timeline.seconds
    assert sum(second.read for second in seconds) == records
    assert sum(len(second.latency) for second in seconds) == records
    assert found.rate.read > 0
    for second in seconds:
        assert sum(share.read for share in second.slots) == second.read
        assert sum(share.written for share in second.slots) == second.written
        assert (second.first_us is None) == (second.read == 0)
    assert {len(second.parts) for second in seconds[:-1]} == {PARTS}
    assert found.checkpoints.timed == "round"
    assert found.checkpoints.skipped == 0
    assert found.bytes.wire > 0
    assert found.bytes.log == found.bytes.headers == 0


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """A run in real processes, of which one is killed."""
    runs = tmp_path_factory.mktemp("runs")
    outcome = run_processes(runs, "uncoordinated", "kill slot=1 at=1200ms", duration_ms=2_500)
    assert not outcome.problems
    return outcome


def test_figures_of_a_broken_run_follow_from_its_journal(broken):
    outcome, driver = broken, broken.driver
    sinks = [task for tasks in driver.job.deployment.sinks.values() for task in tasks]
    times = published_times(driver.directory.output, sinks)
    found = driver.timeline.figures(times)
    assert figures_of(driver_journal(driver.directory), times) == found
    written = [
        second_of(entry.epoch, entry.what)
        for entry in driver_journal(driver.directory)
        if isinstance(entry, Happened) and isinstance(entry.what, SecondMeasured)
    ]
    assert written == driver.timeline.seconds
    records = sum(len(batch) for batch in outcome.outputs.values())
    assert found.records_read == found.records_written == records
    assert sum(len(each.times_ms) for each in times.values()) == records
    assert (found.kills, found.lost) == (1, 1)
    assert len(found.detection_s) == len(found.restart_s) == len(found.recovery_s) == 1
    assert found.detection_s[0] >= 0
    assert len(found.rollbacks) == 1
    assert found.latency_ms.p50 <= found.latency_ms.p99 <= found.latency_ms.max
    committed = found.committed_latency_ms
    assert found.latency_ms.p50 <= committed.p99
    assert found.checkpoints.timed == "task"
    assert found.bytes.log > 0
    (killed,) = outcome.what(ProcessKilled)
    assert found.killed_pids == killed.what.pids


def test_a_failure_is_timed_from_the_fault_and_from_its_detection(broken):
    found = broken.driver.timeline.figures({})
    (failure,) = found.failures
    (lost,) = broken.what(SlotLost)
    assert (failure.slots, failure.lost_at_s) == ((1,), round(lost.at_us / 1_000_000, 3))
    assert (failure.detection_s, failure.restart.s) == (found.detection_s[0], found.restart_s[0])
    assert not failure.restart.censored
    back, from_fault = failure.from_detection, failure.from_fault
    assert (back is None) == (from_fault is None)
    if back is not None:  # on a slow machine nothing was put out before the kill
        assert from_fault.backlog.s == pytest.approx(
            back.backlog.s + failure.detection_s, abs=0.002
        )
    assert failure.hit.slots <= 1
    assert failure.others.slots <= 1


def test_the_table_of_seconds_has_all_that_was_read_and_published(broken):
    driver = broken.driver
    rows = list(measured_seconds(driver.directory))
    whole = [row for row in rows if row.slot is None]
    assert [(row.second, row.read) for row in whole if row.read is not None] == [
        (second.at_s, second.read) for second in driver.timeline.seconds
    ]
    records = sum(len(batch) for batch in broken.outputs.values())
    assert sum(row.published for row in whole) == records
    assert sum(row.published for row in rows if row.slot is not None) == records
    assert {row.slot for row in rows} == {None, 0, 1}


def test_a_simulated_run_has_the_same_kinds_of_figures_but_for_what_only_reality_measures(broken):
    case = Case("uncoordinated", "counting", 3, slots=2, faults="kill slot=1 at=1200ms")
    simulated = figures_of(simulate(case, journal=True).journal)
    real = figures_of(driver_journal(broken.driver.directory))
    for found in (simulated, real):
        assert (found.kills, found.lost, len(found.rollbacks)) == (1, 1, 1)
        assert len(found.detection_s) == len(found.restart_s) == 1
        assert found.commits > 0 < found.checkpoints.stored
        assert found.records_read == found.records_written > 0
        assert from_json(Figures, to_json(found)) == found
    assert (simulated.killed_pids, len(real.killed_pids)) == ((), 1)
    unmeasured = {name for name, value in to_json(simulated).items() if value is None}
    unmeasured -= {name for name, value in to_json(real).items() if value is None}
    assert unmeasured == {
        *("latency_ms", "rate", "bytes", "recovery_s", "failures", "read_again", "written_again")
    }
    unknown = "Not measured in simulation."
    lines = dict(summary(simulated, 1, unknown))
    assert [name for name, text in lines.items() if text == unknown] == ["latency", "bytes"]
