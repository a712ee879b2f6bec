"""Real processes are measured: what slots say of themselves adds up to what the run did."""

from dataclasses import asdict

import pytest
from process_slots import run_processes

from snapline.batch import Batch
from snapline.cli.terminal.summary import summary
from snapline.core.effects import Forward
from snapline.core.events import MessageArrived, SnapshotStored
from snapline.core.messages import Marker
from snapline.engine.control import Frame, Stored
from snapline.journal.entry import Entry, Handled, Happened, Stamped
from snapline.journal.fault_happenings import ProcessKilled
from snapline.journal.happenings import (
    CheckpointTimed,
    LineDecided,
    ReportFenced,
    SecondMeasured,
    SlotLost,
)
from snapline.judge.history import journal_entries
from snapline.metrics.checkpointing.history import PHASES, checkpoint_rows
from snapline.metrics.figures import Figures, figures_of
from snapline.metrics.json_form import from_json, to_json
from snapline.metrics.second import PARTS, second_of
from snapline.rundir.directory import RunDirectory
from snapline.runs.readings import measured_seconds
from snapline.runtime.driver.driver import Driver
from snapline.runtime.driver.timeline import published_times
from snapline.runtime.wire.codec import Wire
from snapline.sim.case import Case
from snapline.sim.run import simulate


def driver_journal(directory: RunDirectory) -> list[Entry]:
    (path,) = (directory.path / "journal").glob("driver-*.jsonl")
    return journal_entries(directory, path)


def slot_entries(directory: RunDirectory) -> list[Entry]:
    paths = (directory.path / "journal").glob("slot-*.jsonl")
    return [entry for path in paths for entry in journal_entries(directory, path)]


def counted_by_hand(driver: Driver, outputs: dict[str, Batch]) -> dict[str, int]:
    """The bytes of a run without failures, from what its full journals say of each message."""
    directory, topology = driver.directory, driver.job.topology
    handled = [entry for entry in slot_entries(directory) if isinstance(entry, Handled)]
    taken = [e.event.message for e in handled if isinstance(e.event, MessageArrived)]
    stamps = [entry for entry in slot_entries(directory) if isinstance(entry, Stamped)]
    assert len(taken) == len(stamps) > 0
    logged = {(each.channel, each.seq) for each in stamps if each.stamp.log}
    size = {(m.channel, m.seq): m.batch.nbytes + len(m.header) for m in taken}
    forwards = [e.actor for e in handled for f in e.effects if isinstance(f, Forward)]
    frame = Frame(topology.channels[0].id, (1, 1, 1), Marker(1))
    wire, known = Wire.of(driver.job), driver_journal(directory)
    moments = {
        (e.what.task, e.what.checkpoint): e.what.moments
        for e in known
        if isinstance(e, Happened) and isinstance(e.what, CheckpointTimed)
    }
    stored = [
        Stored(e.epoch, e.event.meta, moments[e.event.meta.task, e.event.meta.checkpoint])
        for e in known
        if isinstance(e, Handled) and isinstance(e.event, SnapshotStored)
    ]
    return {
        "payload": sum(message.batch.nbytes for message in taken),
        "headers": sum(len(each.stamp.header) for each in stamps),
        "markers": sum(len(topology.outputs[t]) for t in forwards) * wire.pack(frame).size,
        "metadata": sum(wire.pack(report).size for report in stored),
        "log": sum(size[each] for each in logged),
        "snapshots": sum(report.meta.bytes for report in stored),
        "output": sum(batch.nbytes for batch in outputs.values()),
    }


@pytest.fixture(scope="module", params=["aligned", "hmnr"])
def calm(request, tmp_path_factory):
    """A run in real processes without failures, with full journals."""
    runs = tmp_path_factory.mktemp("calm")
    outcome = run_processes(runs, request.param, duration_ms=1_500, journal="full")
    assert not outcome.problems
    return outcome


def test_a_run_without_failures_reads_and_writes_every_record_once(calm):
    driver = calm.driver
    found = driver.timeline.figures({})
    records = sum(len(batch) for batch in calm.outputs.values())
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
    in_rounds = driver.job.protocol.name == "aligned"
    assert found.checkpoints.timed == ("round" if in_rounds else "task")
    assert found.checkpoints.skipped == found.checkpoints.useless == 0


def test_bytes_by_kind_are_what_is_counted_by_hand(calm):
    found = asdict(calm.driver.timeline.figures({}).bytes)
    by_hand = counted_by_hand(calm.driver, calm.outputs)
    if calm.what(ReportFenced):  # a checkpoint of a task on its own may come after the end
        for kind in ("metadata", "snapshots"):
            assert found[kind] >= by_hand.pop(kind)
    assert {kind: found[kind] for kind in by_hand} == by_hand
    assert min(found["control"], found["markers"], found["wire"]) > 0
    pays = {kind for kind in ("headers", "log") if found[kind]}
    assert pays == (set() if calm.driver.job.protocol.name == "aligned" else {"headers", "log"})


def test_every_checkpoint_of_a_run_has_phases_that_add_up_to_its_time(calm):
    rows = checkpoint_rows(driver_journal(calm.driver.directory))
    found = calm.driver.timeline.figures({})
    assert len(rows) == found.checkpoints.stored > 0
    for row in rows:
        phases = row.phases
        assert phases is not None
        each = [getattr(phases, f"{name}_us") for name in PHASES]
        assert sum(each) == phases.whole_us
        assert min(each) >= 0
        assert phases.start_us + phases.whole_us <= row.stored_us + 1_000
        assert phases.start_us > 0
    assert found.checkpoint_phases_ms.time.max == max(row.phases.whole_us for row in rows) / 1000
    assert {(row.task, row.checkpoint) for row in rows if row.committed} >= {
        *calm.what(LineDecided)[-1].what.line.items()
    }


def test_every_process_says_what_it_uses(calm):
    found = calm.driver.timeline.figures({}).resources
    assert set(found.cpu_s) == set(found.rss_bytes) == {"driver", "slot/0", "slot/1"}
    assert min(found.rss_bytes.values()) > 0
    assert sum(found.cpu_s.values()) > found.generator_cpu_s > 0
    checkpoints = calm.driver.timeline.figures({}).checkpoints
    assert found.store.puts > checkpoints.stored  # decisions, too
    assert found.store.put_bytes > checkpoints.bytes
    assert found.log_syncs > 0


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
        *("latency_ms", "rate", "bytes", "recovery_s", "failures", "read_again", "written_again"),
        *("checkpoint_phases_ms", "resources"),
    }
    unknown = "Not measured in simulation."
    lines = dict(summary(simulated, 1, unknown))
    assert [name for name, text in lines.items() if text == unknown] == ["latency", "bytes"]
