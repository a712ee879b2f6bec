"""A run is judged while it goes on: as much as its published output shows, and in the end the same."""

import os
import time

import numpy as np
import pytest

from snapline.batch import Batch
from snapline.core.guarantee import Guarantee
from snapline.ids import TaskId
from snapline.judge.evidence import Question, RunEnding
from snapline.judge.following import Following
from snapline.judge.live import PATIENCE_INTERVALS, LiveJudge, live_judge
from snapline.judge.reader import read_sinks
from snapline.judge.run_directory import judge
from snapline.rundir.output_rows import public_view
from snapline.validate.causes import Cause
from snapline.validate.incremental import Incremental
from written_run import INTERVAL_MS, WINDOW_MS, WrittenRun

SETTLED = 2
"""So many windows behind the newest one are settled: a window and the disorder of 300 ms."""


@pytest.fixture
def clock(monkeypatch):
    """The time at which rows are written, in ms."""
    now = [1_000_000_000_000]
    monkeypatch.setattr(time, "time_ns", lambda: now[0] * 1_000_000)
    monkeypatch.setattr(os, "fsync", lambda fd: None)  # nothing here survives anything
    return now


@pytest.fixture
def make(tmp_path, clock):
    return lambda *args, **given: WrittenRun(tmp_path, clock, *args, **given)


def judge_of(run) -> LiveJudge:
    return live_judge(run.directory)


def whole(run):
    return judge(run.directory, Question(allow_vacuous=True), ending=RunEnding())


def assert_ends_like_the_whole(run, judge, **end):
    run.end(**end)
    report, right = judge.finish(), whole(run)
    assert report.judged == right.judged
    assert report.sentences == right.sentences
    # ... and from the beginning, once it is over
    assert judge_of(run).finish().judged == right.judged
    return report


@pytest.mark.parametrize("flow", ["sst", "mst"])
def test_what_is_published_is_judged_while_the_run_goes_on(make, flow):
    run = make(flow)
    judge = judge_of(run)
    before = judge.poll()
    assert before.through_ms is None
    for number, window in enumerate(run.windows):
        run.write_window(window)
        assert judge.poll() == before  # written is not published
        run.publish()
        before = now = judge.poll()
        if number >= SETTLED:
            assert now.through_ms == window - (SETTLED - 1) * WINDOW_MS
            assert now.judged.inputs == np.sum(run.events["time"] < now.through_ms)
            assert now.judged.reliability == 100.0
    report = assert_ends_like_the_whole(run, judge)
    assert report.verdict(Guarantee.EXACTLY_ONCE).kept == "yes"
    assert report.judged.inputs == len(run.events)


def test_what_a_rollback_takes_back_was_never_there(make):
    run = make()
    judge = judge_of(run)
    for number, window in enumerate(run.windows):
        run.write_window(window)
        if number % 4 == 3:
            run.roll_back()  # the last three were written in vain
            judge.poll()
            for again in run.windows[number - 3 : number + 1]:
                run.write_window(again)
            run.publish()
        assert judge.poll().judged.causes == {}
    run.publish()
    assert judge.poll().through_ms > WINDOW_MS
    assert_ends_like_the_whole(run, judge)


def test_a_lost_window_is_told_when_it_cannot_come_any_more(make):
    run = make(seconds=12)
    judge = judge_of(run)
    told_ms = None
    for number, window in enumerate(run.windows):
        run.write_window(window, (1,) if number == 2 else (0, 1))
        run.publish()
        now = judge.poll()
        if now.judged.lost and told_ms is None:
            told_ms = window
            report = judge.report(now.judged)
            assert set(report.sentences) == {Cause.MISSING}
            assert "is lost: resource" in report.sentences[Cause.MISSING]
    # Passed some windows later, and then patience.
    passed_ms = run.windows[2] + 2 * WINDOW_MS
    assert told_ms == passed_ms + -(-PATIENCE_INTERVALS * INTERVAL_MS // WINDOW_MS) * WINDOW_MS
    report = assert_ends_like_the_whole(run, judge)
    assert report.verdict(Guarantee.AT_LEAST_ONCE).kept == "no"
    assert "kill slot=0 at=1s" in report.sentences[Cause.MISSING]


def test_nobody_waits_for_windows_one_after_the_other(make):
    run = make(seconds=12)
    judge = judge_of(run)
    for window in run.windows:
        run.write_window(window, without=run.events["id"][run.events["window"] == window][:1])
        run.publish()
        now = judge.poll()
    behind_ms = run.windows[-1] - now.through_ms
    assert behind_ms <= PATIENCE_INTERVALS * INTERVAL_MS + SETTLED * WINDOW_MS
    assert now.judged.lost == now.through_ms // WINDOW_MS
    assert_ends_like_the_whole(run, judge)


def test_a_task_that_says_nothing_about_its_events_is_waited_for(make):
    run = make()
    judge = judge_of(run)
    for window in run.windows[:-2]:
        run.write_window(window, (0,))
        run.publish()
        assert judge.poll().through_ms is None
    for window in run.windows[:-2]:
        run.write_window(window, (1,))
    for window in run.windows[-2:]:
        run.write_window(window)
    run.publish()
    assert judge.poll().judged.causes == {}
    assert judge.poll().through_ms >= run.windows[-SETTLED]
    assert_ends_like_the_whole(run, judge)


def test_a_task_without_events_holds_nobody_up(make):
    run = make(resources=1)
    judge = judge_of(run)
    assert len(set(run.events["task"].tolist())) == 1
    for window in run.windows[:6]:
        run.write_window(window)
        run.publish()
    assert judge.poll().through_ms == run.windows[6 - SETTLED]


def test_an_output_that_comes_twice_is_a_duplicate(make):
    run = make()
    judge = judge_of(run)
    for number, window in enumerate(run.windows):
        run.write_window(window)
        run.publish()
        if number == 5:
            run.write("counts", 0, run.rows(window - WINDOW_MS, 0).slice(0, 1))
        now = judge.poll()
        if number == 5 + SETTLED:
            assert now.judged.causes == {Cause.DUPLICATE: 1}
            assert judge.report(now.judged).verdict(Guarantee.EXACTLY_ONCE).kept == "no"
    report = assert_ends_like_the_whole(run, judge, kill_s=4)
    assert report.judged.causes == {Cause.DUPLICATE: 1}
    assert "no fault had happened yet" in report.sentences[Cause.DUPLICATE]


def test_an_output_that_comes_twice_after_its_window_was_judged_is_a_duplicate_still(make):
    run = make()
    judge = judge_of(run)
    for number, window in enumerate(run.windows):
        run.write_window(window)
        if number == 10:
            run.write("counts", 0, run.rows(run.windows[1], 0).slice(0, 1))
        run.publish()
        judge.poll()
    run.end()
    found, right = judge.finish().judged, whole(run).judged
    assert found.causes == right.causes == {Cause.DUPLICATE: 1}
    assert found.kept(Guarantee.EXACTLY_ONCE) == "no"
    assert found.kept(Guarantee.AT_LEAST_ONCE) == "yes"
    position = right.witnesses[Cause.DUPLICATE].position
    assert found.witnesses[Cause.DUPLICATE].position == position


def test_late_events_may_become_public_later_than_the_counts(make):
    run = make()
    judge = judge_of(run)
    dice = np.random.default_rng(1)
    late = dice.choice(run.may_be_late, 60, replace=False)
    for number, window in enumerate(run.windows):
        run.write_window(window, without=late)
        run.write_late(
            [id for id in late if id in run.events["id"][run.events["window"] == window]]
        )
        run.publish("counts")
        if number % 6 == 5:
            run.publish("late")
        assert judge.poll().judged.causes == {}
    run.publish()
    assert judge.progress.through_ms > run.windows[len(run.windows) // 2]
    report = assert_ends_like_the_whole(run, judge)
    assert (report.judged.late, report.judged.lost) == (60, 0)


def test_an_event_that_is_called_late_and_was_in_time_is_told(make):
    run = make()
    judge = judge_of(run)
    timely = run.events["id"][~np.isin(run.events["id"], run.may_be_late)][:1]
    for window in run.windows:
        run.write_window(window, without=timely)
        run.write_late(timely if window == run.windows[0] else ())
        run.publish()
        judge.poll()
    report = assert_ends_like_the_whole(run, judge)
    assert report.judged.causes == {Cause.NOT_LATE: 1}
    assert report.verdict(Guarantee.EXACTLY_ONCE).kept == "no"


def test_a_long_recovery_does_not_use_up_the_patience(make, clock):
    run = make()
    judge = judge_of(run)
    second = run.events["id"][run.events["window"] == run.windows[1]]
    late = second[np.isin(second, run.may_be_late)][:5]
    for window in run.windows[:5]:
        run.write_window(window, without=late)
        run.publish("counts")
        judge.poll()
    clock[0] += 60_000
    for window in run.windows[5:8]:
        run.write_window(window)
        run.publish("counts")
        assert judge.poll().judged.causes == {}
    run.write_late(late)
    for window in run.windows[8:]:
        run.write_window(window)
        run.publish()
        assert judge.poll().judged.causes == {}
    assert_ends_like_the_whole(run, judge)


def test_an_event_that_was_given_up_and_comes_all_the_same_leaves_it_undecided(make):
    run = make(seconds=12)
    judge = judge_of(run)
    for number, window in enumerate(run.windows):
        run.write_window(window, (1,) if number == 2 else (0, 1))
        if number == len(run.windows) - 2:
            assert judge.progress.judged.lost > 0
            run.write("counts", 0, run.rows(run.windows[2], 0))
        run.publish()
        judge.poll()
    run.end()
    judged = judge.finish().judged
    assert judged.undecided is not None
    assert judged.kept(Guarantee.EXACTLY_ONCE) == "unknown"
    assert whole(run).judged.kept(Guarantee.EXACTLY_ONCE) == "yes"


def test_a_row_of_a_window_to_come_does_not_end_the_windows_before_it(make):
    run = make(seconds=12)
    judge = judge_of(run)
    row = run.rows(run.windows[2], 0).slice(0, 1)
    for window in run.windows[:3]:
        run.write_window(window)
    run.write("counts", 0, row.with_columns(window=np.array([40 * WINDOW_MS])))
    for window in run.windows[3:-1]:  # task 0 is slow
        run.write_window(window, (1,))
        run.publish()
        assert judge.poll().judged.lost == 0
    for window in run.windows[3:-1]:
        run.write_window(window, (0,))
    run.write_window(run.windows[-1])
    run.publish()
    report = assert_ends_like_the_whole(run, judge)
    assert report.judged.causes == {Cause.WRONG_WINDOW: 1}


def test_events_that_no_output_claims_are_expected_all_the_same(make):
    run = make(seconds=12)
    judge = judge_of(run)
    gone = run.events["id"][(run.events["partition"] == 1) & (run.events["window"] > WINDOW_MS)]
    for window in run.windows:
        run.write_window(window, without=gone)
        run.publish()
        now = judge.poll()
    assert now.judged.inputs == np.sum(run.events["time"] < now.through_ms)
    assert now.judged.lost > 500
    assert_ends_like_the_whole(run, judge)


def test_without_any_output_everything_is_lost(make):
    run = make()
    report = assert_ends_like_the_whole(run, judge_of(run))
    assert report.judged.lost == len(run.events)


def test_where_nothing_is_committed_output_is_public_as_it_is_written(make):
    run = make(protocol="none")
    judge = judge_of(run)
    for number, window in enumerate(run.windows):
        run.write_window(window, (1,) if number == 9 else (0, 1))
        run.flush()
        if number == 7:
            run.roll_back()  # a new life; what the old one wrote stays
        judge.poll()
    assert judge.progress.through_ms is not None
    assert_ends_like_the_whole(run, judge)


@pytest.mark.parametrize("protocol", ["aligned", "none"])
@pytest.mark.parametrize("poll_while_it_runs", [True, False])
def test_memory_does_not_grow_with_the_run(make, monkeypatch, protocol, poll_while_it_runs):
    held, taken = [], []
    take = LiveJudge._take

    def taking(judge, step):
        take(judge, step)
        held.append(judge.progress)
        taken.append(len(step.outputs))

    monkeypatch.setattr(LiveJudge, "_take", taking)
    run = make(protocol=protocol, seconds=24)
    judge = judge_of(run)
    for window in run.windows:
        run.write_window(window)
        run.publish()
        if poll_while_it_runs:
            judge.poll()
    run.end()
    assert judge.finish().judged.inputs == len(run.events)
    if protocol == "aligned":
        assert len(held) == len(run.windows)  # manifests
    per_window = len(run.events) / len(run.windows)
    assert max(progress.held_events for progress in held) < 7 * per_window
    assert max(taken) < sum(taken) / 10
    assert all(0 < progress.held_bytes <= progress.bound_bytes for progress in held)


def test_what_never_came_out_is_judged_piece_by_piece(make, monkeypatch):
    held = []
    advance = Incremental.advance

    def advancing(judge, watermark):
        held.append(judge.held_events)
        return advance(judge, watermark)

    monkeypatch.setattr(Incremental, "advance", advancing)
    run = make(seconds=30)
    run.write_window(0)
    run.publish()
    run.end()
    judged = judge_of(run).finish().judged
    assert judged == whole(run).judged
    assert max(held) < len(run.events) / 10
    assert judged.causes.keys() == {Cause.TRUNCATED}


def test_rows_of_nobody_are_told(make):
    run = make()
    judge = judge_of(run)
    for window in run.windows:
        run.write_window(window)
    nobody = Batch.of(id=np.array([-5]), time=np.array([0]), resource=np.array([0]))
    run.write("late", 0, nobody)
    run.publish()
    report = assert_ends_like_the_whole(run, judge)
    assert report.judged.causes == {Cause.INVENTED: 1}


@pytest.mark.parametrize("protocol", ["aligned", "none"])
def test_a_position_leads_to_when_its_row_was_written(make, clock, protocol):
    run = make(protocol=protocol)
    following = Following(run.directory, public_view(protocol))
    for number, window in enumerate(run.windows):
        for task in (0, 1):
            clock[0] += 7
            run.write_window(window, (task,))
        run.publish()
        if number % 5 == 4:
            run.roll_back()
    run.write_late(run.events["id"][:9])
    run.publish()
    assert sum(len(step.outputs) for step in following.steps()) == 90
    tasks = {sink: [TaskId(f"{sink}/0"), TaskId(f"{sink}/1")] for sink in ("counts", "late")}
    for sink, output in read_sinks(run.directory, tasks, public_view(protocol)).items():
        stamps = output.stamps
        found = [following.written_ms(sink, position) for position in stamps["position"].tolist()]
        assert found == (stamps["written"] + run.origin_ms).tolist()
