"""Real processes are measured: what slots say of themselves adds up to what the run did."""

import signal

from process_slots import run_processes

from snapline.journal.entry import Entry
from snapline.judge.history import journal_entries
from snapline.metrics.figures import figures_of
from snapline.metrics.second import seconds_of
from snapline.rundir.directory import RunDirectory
from snapline.runtime.driver.timeline import published_times


def driver_journal(directory: RunDirectory) -> list[Entry]:
    (path,) = (directory.path / "journal").glob("driver-*.jsonl")
    return journal_entries(directory, path)


def test_a_run_without_failures_reads_and_writes_every_record_once(tmp_path):
    outcome = run_processes(tmp_path, "aligned", duration_ms=1_500)
    driver = outcome.driver
    found = driver.timeline.metrics({})
    records = sum(len(batch) for batch in outcome.outputs.values())
    assert found["records_read"] == found["records_written"] == records > 0
    assert found["read_again"] == found["written_again"] == 0
    seconds = driver.timeline.seconds
    assert sum(second.read for second in seconds) == records
    assert sum(len(second.latency) for second in seconds) == records
    assert found["checkpoints"]["timed"] == "round"
    assert found["checkpoints"]["skipped"] == 0
    assert found["bytes"]["wire"] > 0
    assert found["bytes"]["log"] == found["bytes"]["headers"] == 0


def test_figures_of_a_broken_run_follow_from_its_journal(tmp_path):
    outcome = run_processes(tmp_path, "uncoordinated", "kill slot=1 at=1200ms", duration_ms=2_500)
    assert not outcome.problems
    driver = outcome.driver
    sinks = [task for tasks in driver.job.deployment.sinks.values() for task in tasks]
    times = published_times(driver.directory.output, sinks)
    found = driver.timeline.metrics(times)
    assert figures_of(driver_journal(driver.directory), times) == found
    assert seconds_of(driver_journal(driver.directory)) == driver.timeline.seconds
    records = sum(len(batch) for batch in outcome.outputs.values())
    assert found["records_read"] == found["records_written"] == records
    assert sum(map(len, times.values())) == records
    assert (found["kills"], found["lost"]) == (1, 1)
    assert len(found["detection_s"]) == len(found["restart_s"]) == len(found["recovery_s"]) == 1
    assert found["detection_s"][0] >= 0
    assert len(found["rollbacks"]) == 1
    assert found["latency_ms"]["p50"] <= found["latency_ms"]["p99"] <= found["latency_ms"]["max"]
    committed = found["committed_latency_ms"]
    assert found["latency_ms"]["p50"] <= committed["p99"]
    assert found["checkpoints"]["timed"] == "task"
    assert found["bytes"]["log"] > 0
    assert any(event.detail.get("signal") == signal.SIGKILL for event in outcome.happened)
