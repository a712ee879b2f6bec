"""The timeline of a run, by hand: what a driver says, and what is told, written down and computed."""

import numpy as np
import pytest

from snapline.batch import Batch
from snapline.core.effects import Rollback
from snapline.core.events import SnapshotStored, TasksLost
from snapline.core.messages import CheckpointMeta, RecoveryLine
from snapline.ids import TaskId
from snapline.journal.entry import COORDINATOR, Handled, Happened
from snapline.journal.fault_happenings import ProcessKilled
from snapline.journal.happenings import (
    JobRecovered,
    JobRunning,
    LineDecided,
    LineFound,
    SecondMeasured,
    SlotLost,
    SlotRunning,
)
from snapline.metrics.figures import figures_of
from snapline.metrics.histogram import Histogram
from snapline.metrics.second import Usage, Used, Volume
from snapline.runtime.driver.timeline import Timeline, published_times
from snapline.runtime.wire.control_messages import Pulse
from snapline.storage.api import WrittenRows

A = TaskId("a/0")
SECOND = 1_000_000


def pulse(read=100, epoch=1, running=True, latency_ms=20, backlog=5, at_us=None, used=None):
    histogram = Histogram()
    if read:
        histogram.add_ages(np.zeros(read, np.int64), now_us=latency_ms * 1000)
    first_us = last_us = at_us
    if at_us is not None:
        first_us = at_us - 400_000
    said = epoch, running, read, read, backlog, Volume(wire=read), histogram.pairs(), ()
    return Pulse(*said, first_us, last_us, used)


class Run:
    """A driver with a clock that is set by hand, and its watcher."""

    def __init__(self, warm_up_us=0):
        self.at_us = 0
        self.journal = []
        self.events = []
        self.seconds = []
        self.timeline = Timeline(self, warm_up_us)
        self.timeline.attach(self)

    def now_us(self):
        return self.at_us

    def note(self, actor, epoch, what):
        self.add(Happened(self.at_us, actor, epoch, what))

    def add(self, entry):
        self.journal.append(entry)
        self.timeline.see(entry)

    def event(self, happened):
        self.events.append(happened)

    def second(self, second):
        self.seconds.append(second)

    def told(self, kind):
        return [event.what for event in self.events if isinstance(event.what, kind)]

    def live(self, seconds, slots=(0, 1), **said):
        """Half a second after half a second, with a pulse of every slot."""
        for _ in range(2 * seconds):
            self.at_us += SECOND // 2
            self.timeline.tick()
            for slot in slots:
                self.timeline.pulse(slot, pulse(**said, at_us=self.at_us))

    def lose(self, slot, line=0):
        self.note(f"slot/{slot}", 1, ProcessKilled(pids=(70 + slot,)))
        self.at_us += 100_000
        self.note(COORDINATOR, 1, SlotLost(slot, 1))
        rollback = Rollback(RecoveryLine({A: line}))
        self.add(Handled(self.at_us, COORDINATOR, 1, 0, TasksLost((A,)), (rollback,)))


@pytest.fixture
def run():
    made = Run()
    made.note(COORDINATOR, 1, JobRunning())
    made.at_us = 100_000
    return made


def test_pulses_add_up_to_seconds(run):
    run.live(3)
    assert [second.at_s for second in run.seconds] == [0, 1, 2]
    second = run.seconds[1]
    assert (second.read, second.written, second.running, second.backlog) == (400, 400, 2, 10)
    assert second.volume.wire == 400
    assert second.p50_ms == pytest.approx(20, rel=0.02)


def test_what_slots_and_the_driver_use_adds_up_to_seconds_each_apart(run):
    run.live(1, slots=(0, 1), used=Used(300, 7, Usage(puts=1)))
    run.timeline.spent(48, Used(20, 9, Usage(gets=2)))
    run.timeline.spent(24, None)
    run.timeline.close()
    assert run.seconds[0].processes == {"slot/0": (300, 7), "slot/1": (300, 7)}
    assert run.seconds[1].processes == {"slot/0": (300, 7), "slot/1": (300, 7), "driver": (20, 9)}
    assert run.seconds[1].usage == Usage(puts=2, gets=2)
    assert [second.volume.control for second in run.seconds] == [0, 72]
    found = run.timeline.figures({})
    assert found.resources.rss_bytes == {"driver": 9, "slot/0": 7, "slot/1": 7}
    assert figures_of(run.journal, {}) == found


def test_before_all_slots_run_there_is_no_time():
    early = Run()
    early.live(2, read=0)
    assert early.seconds == []


def test_time_passes_when_nobody_says_anything(run):
    run.live(2)
    run.at_us = 5_200_000
    run.timeline.tick()
    assert [second.read for second in run.seconds] == [200, 400, 200, 0, 0]


def test_the_last_second_is_told_although_it_is_not_over(run):
    run.live(1)
    run.timeline.close()
    assert [second.read for second in run.seconds] == [200, 200]


def test_a_rollback_tells_what_the_line_costs_and_again_only_if_it_costs_more(run):
    for number in (1, 2, 3):
        stored = SnapshotStored(CheckpointMeta(A, number, offsets={0: number * 100}))
        run.add(Handled(run.at_us, COORDINATOR, 1, 0, stored, ()))
    run.live(1)
    run.lose(1, line=2)
    run.lose(0, line=2)
    (found,) = run.told(LineFound)
    assert (found.stored, found.skipped, found.back_records) == (3, 1, 200)


def test_while_a_slot_is_missing_nobody_knows_the_backlog(run):
    run.live(1)
    run.lose(1)
    run.live(1, slots=(0,), running=False, read=0)
    assert (run.seconds[-1].running, run.seconds[-1].backlog) == (0, None)


def test_recovery_is_told_when_five_seconds_were_as_before(run):
    run.live(12)
    run.lose(1)
    run.live(2, slots=(0,), running=False, read=0)
    run.note(COORDINATOR, 2, JobRunning())
    run.live(2, epoch=2, latency_ms=900)  # half of what second 16 writes is as before
    run.live(4, epoch=2)
    assert run.told(JobRecovered) == []
    run.live(1, epoch=2)
    (recovered,) = run.told(JobRecovered)
    assert recovered.recovery_s == pytest.approx(16.25 - 12.2)  # its first part is not
    assert run.timeline.figures({}).recovery_s == (recovered.recovery_s,)


def test_a_slot_that_comes_back_alone_runs_again(run):
    run.live(2)
    run.note(COORDINATOR, 1, SlotLost(1, 1))
    run.live(1, slots=(0,))
    assert run.seconds[-1].backlog is None
    run.note("slot/1", 1, SlotRunning())
    run.live(1, running=True)
    assert run.seconds[-1].backlog is not None
    assert len(run.timeline.figures({}).restart_s) == 1


def test_seconds_are_told_as_seconds_and_not_as_events(run):
    run.live(3)
    assert not run.told(SecondMeasured)


def test_figures_are_the_same_from_the_journal(run):
    run.live(3)
    run.lose(1)
    run.note(COORDINATOR, 2, JobRunning())
    run.live(3, epoch=2)
    run.timeline.close()
    assert figures_of(run.journal, {}) == run.timeline.figures({})
    assert run.timeline.figures({}).records_read == 2400


def lively(run):
    """A minute with lines, two failures from which it recovers, and one from which it does not."""
    for number in range(1, 61):
        run.live(1, epoch=1 + number // 20, latency_ms=20 if number <= 40 else 30)
        run.note(COORDINATOR, 1, LineDecided(number, 1, {A: number}))
        if number in (19, 39, 58):
            run.lose(1)
            run.note(COORDINATOR, 1 + (number + 1) // 20, JobRunning())
    run.timeline.close()


def test_seconds_long_ago_become_one_and_the_figures_stay_what_they_are(run):
    run.timeline.kept_s, run.timeline.folded_s = 15, 3
    lively(run)
    assert len(run.timeline.seconds) <= 1 + 15 + 3
    assert run.timeline.told <= 18 + 3 * 4  # lines of the last seconds, and failures
    found = run.timeline.figures({})
    assert (found.commits, found.lost) == (60, 3)
    assert [time is not None for time in found.recovery_s] == [True, True, False]
    assert found == figures_of(run.journal, {})


def test_who_has_not_recovered_for_long_is_not_waited_for(run):
    run.timeline.kept_s, run.timeline.folded_s = 15, 3
    run.live(12)
    run.lose(1)
    run.note(COORDINATOR, 2, JobRunning())
    run.live(60, epoch=2, latency_ms=5_000)  # it is slow for ever
    run.lose(0)
    run.note(COORDINATOR, 3, JobRunning())
    run.live(12, epoch=3, latency_ms=5_000)
    assert len(run.told(JobRecovered)) == 1  # the second failure is held against the time before it
    assert [time is not None for time in run.timeline.figures({}).recovery_s] == [False, True]


def test_a_second_knows_what_each_slot_did_and_how_it_stood_in_each_part(run):
    run.live(1)
    for slot, latency_ms in ((0, 20), (1, 80)):
        run.timeline.pulse(slot, pulse(100 + slot, latency_ms=latency_ms, backlog=3 + slot))
    run.at_us = 1_300_000  # the parts until 1.25 s are over
    run.timeline.pulse(1, pulse(40, latency_ms=500, backlog=9))
    run.at_us = 2_000_000
    run.timeline.tick()
    second = run.seconds[1]
    (first, other) = second.slots
    assert first[:4] == (0, 200, 200, 3)
    assert other[:4] == (1, 241, 241, 9)
    assert (first.p99_ms, other.p99_ms) == pytest.approx((20, 500), rel=0.02)
    assert [part.backlog for part in second.parts] == [7, 12, 12, 12]
    assert [part.running for part in second.parts] == [2, 2, 2, 2]
    p99 = [part.p99_ms for part in second.parts]
    assert p99[:2] == pytest.approx([80, 500], rel=0.02)
    assert p99[2:] == [None, None]
    assert second.p99_ms == pytest.approx(500, rel=0.02)


def test_a_slot_that_is_lost_has_no_backlog_and_then_no_row(run):
    run.live(2)
    run.lose(1)
    run.live(2, slots=(0,))
    rows = [[(row.slot, row.backlog) for row in second.slots] for second in run.seconds]
    assert rows == [[(0, 5), (1, 5)], [(0, 5), (1, 5)], [(0, 5), (1, None)], [(0, 5)]]


def test_a_second_knows_when_input_was_read_first_and_last(run):
    run.live(2)
    spans = [(second.first_us, second.last_us) for second in run.seconds]
    assert spans == [(200_000, 600_000), (700_000, 1_600_000)]
    run.timeline.close()
    assert run.seconds[-1].length_us == 100_000
    # 800 records were read from 0.2 s on until 2.1 s.
    assert run.timeline.figures({}).rate.read == pytest.approx(800 / 1.9, rel=0.001)


def test_the_seconds_of_the_warm_up_do_not_count_even_when_they_are_long_ago():
    run = Run(warm_up_us=9 * SECOND)
    run.timeline.kept_s, run.timeline.folded_s = 15, 3
    run.note(COORDINATOR, 1, JobRunning())
    run.live(8, latency_ms=900)
    run.live(42)
    run.timeline.close()
    assert len(run.timeline.seconds) <= 2 + 15 + 3
    found = run.timeline.figures({})
    assert found == figures_of(run.journal, {}, 9 * SECOND)
    assert found.latency_ms.max == pytest.approx(20, rel=0.02)
    assert figures_of(run.journal, {}).latency_ms.p99 == pytest.approx(900, rel=0.02)
    assert (found.records_read, found.bytes.wire) == (20_000, 16_600)
    assert found.rate.read == pytest.approx(16_600 / (50 - 8.6), rel=0.001)


def test_recovery_is_told_once_although_p99_is_watched_for_longer(run):
    run.live(12)
    run.lose(1)
    run.note(COORDINATOR, 2, JobRunning())
    for _ in range(20):  # one record of fifty is slow
        run.live(1, epoch=2)
        run.timeline.pulse(0, pulse(8, epoch=2, latency_ms=5_000))
    assert len(run.told(JobRecovered)) == 1
    (failure,) = run.timeline.figures({}).failures
    assert (failure.from_detection.p50.censored, failure.from_detection.p99.censored) == (
        False,
        True,
    )
    assert failure.slots == (1,)
    assert failure.detection_s == pytest.approx(0.1)
    assert run.timeline.figures({}) == figures_of(run.journal, {})


def test_memory_does_not_grow_with_the_length_of_a_run_that_never_recovers(run):
    run.live(12)
    run.lose(1)
    run.note(COORDINATOR, 2, JobRunning())
    run.timeline.kept_s, run.timeline.folded_s = 30, 10
    run.live(100, epoch=2, latency_ms=5_000)
    assert run.timeline.troubles == 0
    (failure,) = run.timeline.figures({}).failures
    assert failure.from_detection.p50.censored
    assert 30 <= failure.from_detection.p50.s <= 31


class Written:
    """The output of two sink tasks, of which the first rows of one were deleted; another has no times."""

    def pieces(self, task, view):
        assert view == "committed"
        return {"out/0": ("a", "b"), "out/1": ("c",), "out/2": ()}[task]

    def read(self, piece):
        rows = {
            "a": [
                WrittenRows(5, 0, Batch.of(time=[50, 60])),
                WrittenRows(7, 0, Batch.of(time=[70])),
            ],
            "b": [WrittenRows(8, 0, Batch.of(time=[80]))],
            "c": [WrittenRows(0, 0, Batch.of(count=[1]))],
        }
        return iter(rows[piece])


def test_the_times_of_published_rows_are_known_by_their_numbers():
    tasks = [TaskId(f"out/{index}") for index in range(3)]
    found = published_times(Written(), tasks)
    assert list(found) == ["out/0"]
    times = found[tasks[0]]
    assert (times.first, times.times_ms.tolist()) == (5, [50, 60, 70, 80])
    assert times.between(6, 8).tolist() == [60, 70]
    assert times.between(0, 6).tolist() == [50]
    assert times.between(0, 5).tolist() == []
