"""The figures of a real run with a kill in it: plausible, complete, and told while it went on."""

from dataclasses import replace

import pytest
from run_helpers import assert_dead
from scripted_faults import PATIENT

from snapline.journal.entry import Happened
from snapline.journal.fault_happenings import ProcessKilled
from snapline.journal.happenings import Happening, JobRunning, LineFound, SlotLost
from snapline.judge.history import driver_entries
from snapline.metrics.figures import figures_of
from snapline.metrics.second import Second
from snapline.metrics.seconds_table import SecondRow
from snapline.rundir.output_rows import sinks_of
from snapline.rundir.spec import Spec
from snapline.runs.finished import Run, open_run
from snapline.runs.run import run
from snapline.runtime.driver.timeline import published_times

pytestmark = pytest.mark.spark


class Watched:
    """A watcher that remembers."""

    def __init__(self) -> None:
        self.events: list[type[Happening]] = []
        self.seconds: list[Second] = []

    def event(self, happened: Happened) -> None:
        self.events.append(type(happened.what))

    def second(self, second: Second) -> None:
        self.seconds.append(second)


def assert_computed_again(finished: Run) -> None:
    """The figures follow from what the run left, with the warm-up and the interval that were asked for."""
    entries, gap = driver_entries(finished.directory)
    sinks = [task for tasks in sinks_of(finished.directory).values() for task in tasks]
    times = published_times(finished.directory.output, sinks)
    assert gap is None
    warm_up_us = finished.spec.warm_up_ms * 1000
    asked_ms = finished.spec.interval_ms
    judged = replace(finished.figures, deviation=None)  # only whoever knows the answer can tell
    assert figures_of(entries, times, warm_up_us, asked_ms) == judged
    assert figures_of(entries, times).bytes.wire > finished.figures.bytes.wire


def assert_seconds(finished: Run) -> None:
    """The table of seconds is the same for Spark and without it."""
    rows = [SecondRow(*row) for row in finished.seconds().collect()]
    assert rows == finished.second_rows()
    assert {row.slot for row in rows} == {None, 0, 1}
    assert sum(row.published for row in rows if row.slot is None) == 4_000


def test_a_run_with_a_kill_tells_its_seconds_and_has_all_figures(spark, tmp_path):
    watched = Watched()
    spec = Spec(
        "q12",
        protocol="uncoordinated",
        rate=1_000,
        duration_ms=4_000,
        interval_ms=500,
        faults="kill slot=1 at=2s",
        warm_up_ms=1_000,
    )
    finished = run(spec, spark, runs=tmp_path, watcher=watched, timeouts=PATIENT)
    assert finished.verdict.kept == "yes", finished.verdict
    found = finished.metrics
    assert finished.directory.read("result.json")["metrics"] == found
    assert_dead(found["killed_pids"])
    assert_computed_again(finished)
    assert_seconds(finished)

    # Every bid gives one row, so both are known exactly, whatever was read again.
    assert found["records_read"] == found["records_written"] == 4_000
    latency, committed = found["latency_ms"], found["committed_latency_ms"]
    assert 0 < latency["p50"] <= latency["p99"] <= latency["max"]
    assert 0 < committed["p50"] <= committed["p99"] <= committed["max"]

    assert (found["kills"], found["lost"]) == (1, 1)
    assert [len(found[name]) for name in ("detection_s", "restart_s", "recovery_s")] == [1, 1, 1]
    assert found["detection_s"][0] >= 0
    assert found["restart_s"][0] > 0
    assert found["recovery_s"][0] is None or found["recovery_s"][0] > 0
    (rollback,) = found["rollbacks"]
    assert 0 <= rollback["skipped"] <= rollback["stored"]
    checkpoints = found["checkpoints"]
    assert 0 <= checkpoints["skipped"] < checkpoints["stored"]
    assert 0 < checkpoints["time_ms"]["median"] <= checkpoints["time_ms"]["max"]
    for kind in ("payload", "control", "metadata", "wire", "log", "snapshots", "output"):
        assert found["bytes"][kind] > 0, kind
    assert set(found["resources"]["cpu_s"]) == {"driver", "slot/0", "slot/1"}

    # The table has every checkpoint, also for a run that is opened from its directory.
    rows = open_run(tmp_path, finished.name, spark).checkpoints().collect()
    assert len(rows) == checkpoints["stored"]
    assert sum(row.skipped for row in rows) == checkpoints["skipped"]
    assert not any(row.useless for row in rows)
    assert any(row.committed for row in rows)
    names = ("start_delay_ms", "alignment_ms", "blocked_ms", "background_ms", "reporting_ms")
    assert [sum(row[name] for name in names) for row in rows] == [
        pytest.approx(row.time_ms) for row in rows
    ]

    order = [
        what for what in watched.events if what in {ProcessKilled, SlotLost, LineFound, JobRunning}
    ]
    assert order == [JobRunning, ProcessKilled, SlotLost, LineFound, JobRunning]
    assert [second.at_s for second in watched.seconds] == [*range(len(watched.seconds))]
    assert {second.epoch for second in watched.seconds} >= {1, watched.seconds[-1].epoch}
    assert watched.seconds[-1].epoch >= 2
    assert watched.seconds[-1].lines == found["commits"] > 0
