"""The figures of a whole run, from its journal."""

import json
from dataclasses import replace

import numpy as np
import pytest

from metric_runs import SECOND, happened, second, seconds
from snapline.core.effects import Commit, Order
from snapline.core.events import JobStarted, SnapshotStored, TriggerRound
from snapline.core.messages import CheckpointMeta, RecoveryLine
from snapline.ids import TaskId
from snapline.journal import codec
from snapline.journal.entry import COORDINATOR, Handled, Happened
from snapline.journal.fault_happenings import ProcessKilled
from snapline.journal.happenings import (
    JobFinished,
    JobRunning,
    LineDecided,
    LineFound,
    OutputPublished,
    SlotLost,
)
from snapline.metrics.costs import CheckpointTimes
from snapline.metrics.figures import Figures, Rate, figures_of, rate, volume
from snapline.metrics.json_form import from_json, to_json
from snapline.metrics.latency import RowTimes, committed
from snapline.metrics.reliability import Events, Results, phases
from snapline.metrics.reliability import figures as lineage_figures
from snapline.metrics.second import Volume, second_of

SINK = TaskId("sink/0")


def last_line(offset: int, position: int) -> Handled:
    meta = CheckpointMeta(SINK, 1, offsets={0: offset}, position=position, bytes=64)
    commit = Commit(RecoveryLine({SINK: 1}))
    return Handled(9_000_000, COORDINATOR, 2, 0, SnapshotStored(meta), (commit,))


def run() -> list:
    calm = [second(at_s, volume=Volume(wire=5), checkpoint_us=(4000,)) for at_s in range(20)]
    return [
        happened(0, JobRunning()),
        Happened(2 * SECOND, COORDINATOR, 1, LineDecided(2, 1, {})),
        happened(2.5, ProcessKilled(pids=(77,)), "slot/1"),
        happened(2.6, SlotLost(1, 1)),
        happened(2.6, LineFound(stored=3, skipped=1, back_s=0.5, back_records=40)),
        Happened(27 * SECOND // 10, COORDINATOR, 1, LineDecided(3, 2, {})),
        happened(3.1, JobRunning(), epoch=2),
        happened(3.1, OutputPublished(number=1, rows={SINK: (0, 2)})),
        *(Happened((s.at_s + 1) * SECOND, COORDINATOR, 1, s.measured()) for s in calm),
        last_line(offset=19_000, position=18_000),
        happened(20, JobFinished()),
    ]


def test_the_figures_of_a_run_follow_from_its_journal_as_it_was_written():
    entries = list(codec.read(codec.lines(run())))
    found = figures_of(entries, {SINK: RowTimes(np.array([3000, 100]))})
    assert found.commits == found.kills == found.lost == 1
    assert found.killed_pids == (77,)
    assert found.detection_s == (0.1,)
    assert found.decision_s == (0.1,)
    assert found.restart_s == (0.5,)
    assert found.recovery_s == (0.5,)  # not before all tasks ran again
    assert found.latency_ms.p50 == pytest.approx(20, rel=0.02)
    assert found.committed_latency_ms.max == pytest.approx(3000, rel=0.02)
    assert (found.records_read, found.read_again) == (19_000, 1_000)
    assert (found.records_written, found.written_again) == (18_000, 2_000)
    assert found.bytes.wire == 100
    assert found.checkpoints.stored == 1
    assert found.checkpoints.bytes == 64
    assert found.checkpoints.time_ms == CheckpointTimes(4.0, 4.0, 4.0)
    assert found.rollbacks == (LineFound(3, 1, 0.5, 40),)


def test_a_run_that_did_not_finish_counts_what_slots_have_said():
    unfinished = [
        entry
        for entry in run()
        if entry.__class__ is Handled or not isinstance(entry.what, JobFinished)
    ]
    found = figures_of(unfinished, {})
    assert (found.records_read, found.read_again) == (20_000, 0)
    assert found.committed_latency_ms is None


def test_records_that_come_before_the_times_that_they_carry_have_no_latency():
    early = [second(at_s, latency_ms=0).measured() for at_s in range(3)]
    late = second(3, latency_ms=300).measured()
    measured = [happened(at_s, what) for at_s, what in enumerate([*early, late])]
    published = happened(3, OutputPublished(number=1, rows={SINK: (0, 2)}))
    found = figures_of([*measured, published], {SINK: RowTimes(np.array([100, 200]))})
    assert (found.latency_ms, found.committed_latency_ms) == (None, None)
    assert found.rate == Rate(1000.0, 1000.0)


def test_a_run_of_which_nothing_is_known_has_figures_all_the_same():
    found = figures_of([])
    assert (found.commits, found.lost, found.restart_s) == (0, 0, ())
    assert (found.latency_ms, found.rate) == (None, None)
    assert (found.records_read, found.bytes) == (None, None)
    assert found.checkpoints.time_ms is None


def test_figures_come_back_from_their_json_equal_and_by_their_names():
    events = Events(np.arange(3), np.arange(3), np.ones(3, np.bool_))
    right = np.ones(1, np.bool_)
    results = Results(np.zeros(1, np.int64), np.array([7]), np.arange(3), np.full(3, 7), right)
    lineage = lineage_figures(events, results, 2, phases([(4, 6)], 9))
    found = replace(figures_of(run(), {SINK: RowTimes(np.array([3000, 100]))}), lineage=lineage)
    written = json.loads(json.dumps(to_json(found)))
    assert from_json(Figures, written) == found
    assert written["killed_pids"] == [77]
    assert written["checkpoints"]["time_ms"] == {"mean": 4.0, "median": 4.0, "max": 4.0}
    assert written["lineage"]["phases"]["control"]["to_ms"] == 4


def test_figures_that_were_written_before_decisions_were_timed_can_still_be_read():
    written = dict(to_json(figures_of(run())))
    assert written.pop("decision_s") == [0.1]
    assert from_json(Figures, written).decision_s == ()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"lost": "1"}, "'1' where a int should be"),
        ({"lost": True}, "True where a int should be"),
        ({"rate": {"read": 1.0}}, r"Rate with the fields \['read'\]"),
        ({"more": 1}, r"Figures with the fields \['commits'"),
        ({"rollbacks": [3]}, "3 where a dict should be"),
    ],
)
def test_what_are_no_figures_is_refused_by_name(change, complaint):
    with pytest.raises(ValueError, match=complaint):
        from_json(Figures, {**to_json(figures_of(run())), **change})


def test_the_rate_counts_seconds_without_input_in_between_and_none_at_the_end():
    calm = seconds(*[20] * 4)
    for idle in (calm[1], calm[3]):
        idle.read, idle.first_us, idle.last_us = 0, None, None
    assert rate(calm) == Rate(666.7, 1333.3)


def test_bytes_add_up_each_apart():
    parts = [second(0, volume=Volume(log=1, wire=2)), second(1, volume=Volume(log=4))]
    assert volume(parts) == Volume(log=5, wire=2)


def test_a_second_comes_back_from_the_journal_equal():
    there = second(3, 17, epoch=2, backlog=9, volume=Volume(snapshots=8), checkpoint_us=(5, 6))
    assert second_of(2, there.measured()) == there


def test_committed_latency_counts_each_row_once_at_its_publication():
    entries = [
        happened(1, OutputPublished(number=1, rows={SINK: (0, 2)})),
        happened(5, OutputPublished(number=2, rows={SINK: (2, 3), "timeless/0": (0, 9)})),
    ]
    histogram = committed(entries, {SINK: RowTimes(np.array([900, 500, 1000]))})
    assert len(histogram) == 3
    assert histogram.percentile_ms(100) == pytest.approx(4000, rel=0.02)
    assert histogram.percentile_ms(1) == pytest.approx(100, rel=0.02)


# Exact rates.


def test_the_rate_counts_from_the_first_read_to_the_last_and_not_in_whole_seconds():
    first = second(0, read=500, written=400, first_us=800_000, last_us=990_000)
    last = second(1, read=100, written=200, first_us=1_000_000, last_us=1_050_000)
    assert rate([first, last]) == Rate(2400.0, 2400.0)


def test_what_was_read_at_one_moment_has_no_rate():
    assert rate([second(0, read=500, first_us=7, last_us=7)]) is None
    assert rate([second(0, read=0, first_us=None, last_us=None)]) == Rate(0.0, 0.0)


# The warm-up.


def order(at: float, number: int) -> Handled:
    effects = (Order((SINK,), TriggerRound(number)),)
    return Handled(round(at * SECOND), COORDINATOR, 1, 0, JobStarted(1), effects)


def complete(at: float, number: int) -> Handled:
    stored = SnapshotStored(CheckpointMeta(SINK, number, bytes=64))
    commit = Commit(RecoveryLine({SINK: number}))
    return Handled(round(at * SECOND), COORDINATOR, 1, 0, stored, (commit,))


def test_the_warm_up_counts_in_totals_and_in_nothing_else():
    slow, usual = {"latency_ms": 900, "read": 10}, {"latency_ms": 20, "read": 1000}
    run = [
        Happened((at_s + 1) * SECOND, COORDINATOR, 1, made.measured())
        for at_s in range(8)
        for made in [second(at_s, **(slow if at_s < 3 else usual), volume=Volume(wire=5))]
    ]
    run += [order(0.1, 1), complete(2.1, 1), order(3, 2), complete(3.5, 2)]
    run += [Happened(2 * SECOND, COORDINATOR, 1, LineDecided(2, 1, {}))]
    run += [
        happened(2, OutputPublished(number=1, rows={SINK: (0, 1)})),
        happened(3, OutputPublished(number=2, rows={SINK: (1, 2)})),
    ]
    run.sort(key=lambda entry: entry.at_us)
    times = {SINK: RowTimes(np.array([0, 2_900]))}
    cold, warm = figures_of(run, times), figures_of(run, times, 3 * SECOND)
    assert warm.latency_ms.max == pytest.approx(20, rel=0.02)
    assert warm.committed_latency_ms.max == pytest.approx(100, rel=0.02)
    assert warm.rate == Rate(1000.0, 1000.0)
    assert warm.bytes.wire == 25
    assert warm.checkpoints.time_ms == CheckpointTimes(500.0, 500.0, 500.0)
    assert cold.latency_ms.max == pytest.approx(900, rel=0.02)
    assert cold.committed_latency_ms.max == pytest.approx(2000, rel=0.02)
    assert cold.bytes.wire == 40
    assert cold.checkpoints.time_ms == CheckpointTimes(1250.0, 1250.0, 2000.0)
    totals = ("records_read", "records_written", "commits", "read_again")
    assert [getattr(warm, name) for name in totals] == [getattr(cold, name) for name in totals]
    assert (warm.records_read, warm.commits, warm.checkpoints.stored) == (5_030, 1, 2)


def test_bytes_per_record_are_of_the_same_seconds_as_the_records():
    """Two seconds of four count: 60 bytes; 90 records were read in the others, of 100 by the line."""
    reads = (40, 50, 30, 20)  # 40 of these were read again
    run = [
        happened(at_s + 1, second(at_s, read=read, volume=Volume(payload=30)).measured())
        for at_s, read in enumerate(reads)
    ]
    run += [last_line(offset=100, position=100), happened(10, JobFinished())]
    assert figures_of(run, {}).bytes.per_record == 1.2  # 120 bytes, 100 records
    assert figures_of(run, {}, 2 * SECOND).bytes.per_record == 6.0  # 60 bytes, 10 records
    assert figures_of(run, {}, 9 * SECOND).bytes.per_record is None


def test_a_second_that_begins_within_the_warm_up_is_part_of_it():
    calm = [second(at_s, volume=Volume(wire=5)) for at_s in range(4)]
    run = [happened(each.at_s + 1, each.measured()) for each in calm]
    sent = [figures_of(run, {}, warm_up_us).bytes.wire for warm_up_us in (0, SECOND, SECOND + 1)]
    assert sent == [20, 15, 10]
    assert figures_of(run, {}, 9 * SECOND).rate == Rate(0.0, 0.0)


def test_committed_latency_leaves_out_rows_that_are_deleted():
    entries = [happened(5, OutputPublished(number=2, rows={SINK: (0, 3)}))]
    histogram = committed(entries, {SINK: RowTimes(np.array([4_900, 4_500]), first=1)})
    assert len(histogram) == 2
    assert histogram.percentile_ms(100) == pytest.approx(500, rel=0.02)
