"""The figures of a whole run, from its journal."""

import numpy as np
import pytest

from metric_runs import SECOND, happened, second, seconds
from snapline.core.effects import Commit
from snapline.core.events import SnapshotStored
from snapline.core.messages import CheckpointMeta, RecoveryLine
from snapline.ids import TaskId
from snapline.journal import codec
from snapline.journal.entry import COORDINATOR, Handled, Happened
from snapline.metrics.figures import figures_of, rate, volume
from snapline.metrics.latency import committed
from snapline.metrics.second import Volume, second_of

SINK = TaskId("sink/0")


def last_line(offset: int, position: int) -> Handled:
    meta = CheckpointMeta(SINK, 1, offsets={0: offset}, position=position, bytes=64)
    commit = Commit(RecoveryLine({SINK: 1}))
    return Handled(9_000_000, COORDINATOR, 2, 0, SnapshotStored(meta), (commit,))


def run() -> list:
    calm = [second(at_s, volume=Volume(wire=5), checkpoint_us=(4000,)) for at_s in range(20)]
    return [
        happened(0, "running"),
        Happened(2 * SECOND, COORDINATOR, 1, "decided", {"epoch": 1, "number": 2}),
        Happened(2 * SECOND, COORDINATOR, 1, "decided", {"epoch": 2, "number": 3}),
        happened(2.5, "killed", "slot/1", pid=77, signal=9),
        happened(2.6, "lost", slot=1),
        happened(2.6, "line", stored=3, skipped=1, back_s=0.5, back_records=40),
        happened(3.1, "running", epoch=2),
        happened(3.1, "published", number=1, rows={SINK: (0, 2)}),
        *(Happened((s.at_s + 1) * SECOND, COORDINATOR, 1, "second", s.detail()) for s in calm),
        last_line(offset=19_000, position=18_000),
        happened(20, "finished"),
    ]


def test_the_figures_of_a_run_follow_from_its_journal_as_it_was_written():
    entries = list(codec.read(codec.lines(run())))
    found = figures_of(entries, {SINK: np.array([3000, 100])})
    assert found["commits"] == found["kills"] == found["lost"] == 1
    assert found["killed_pids"] == [77]
    assert found["detection_s"] == [0.1]
    assert found["restart_s"] == [0.5]
    assert found["recovery_s"] == [0.4]
    assert found["latency_ms"]["p50"] == pytest.approx(20, rel=0.02)
    assert found["committed_latency_ms"]["max"] == pytest.approx(3000, rel=0.02)
    assert (found["records_read"], found["read_again"]) == (19_000, 1_000)
    assert (found["records_written"], found["written_again"]) == (18_000, 2_000)
    assert found["bytes"]["wire"] == 100
    assert found["checkpoints"]["stored"] == 1
    assert found["checkpoints"]["bytes"] == 64
    assert found["checkpoints"]["time_ms"] == {"median": 4.0, "max": 4.0}
    assert found["rollbacks"] == [{"stored": 3, "skipped": 1, "back_s": 0.5, "back_records": 40}]


def test_a_run_that_did_not_finish_counts_what_slots_have_said():
    unfinished = [
        entry for entry in run() if entry.__class__ is Handled or entry.what != "finished"
    ]
    found = figures_of(unfinished, {})
    assert (found["records_read"], found["read_again"]) == (20_000, 0)
    assert found["committed_latency_ms"] is None


def test_a_run_of_which_nothing_is_known_has_figures_all_the_same():
    found = figures_of([], {})
    assert found["latency_ms"] == {"p50": None, "p99": None, "max": None}
    assert found["rate"] == {"read": 0.0, "written": 0.0}
    assert found["checkpoints"]["time_ms"] is None


def test_the_rate_counts_seconds_without_input_in_between_and_none_at_the_end():
    calm = seconds(*[20] * 4)
    calm[1].read = calm[3].read = 0
    assert rate(calm) == {"read": 666.7, "written": 1333.3}


def test_bytes_add_up_each_apart():
    parts = [second(0, volume=Volume(log=1, wire=2)), second(1, volume=Volume(log=4))]
    assert volume(parts) == Volume(log=5, wire=2)


def test_a_second_comes_back_from_the_journal_equal():
    there = second(3, 17, epoch=2, backlog=9, volume=Volume(snapshots=8), checkpoint_us=(5, 6))
    assert second_of(there.detail()) == there


def test_committed_latency_counts_each_row_once_at_its_publication():
    entries = [
        happened(1, "published", number=1, rows={SINK: (0, 2)}),
        happened(5, "published", number=2, rows={SINK: (2, 3), "timeless/0": (0, 9)}),
    ]
    histogram = committed(entries, {SINK: np.array([900, 500, 1000])})
    assert len(histogram) == 3
    assert histogram.percentile_ms(100) == pytest.approx(4000, rel=0.02)
    assert histogram.percentile_ms(1) == pytest.approx(100, rel=0.02)
