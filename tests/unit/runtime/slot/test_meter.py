"""What a slot measures, batch by batch."""

import numpy as np
import pytest

from snapline.batch import Batch
from snapline.core.messages import CheckpointMeta, Message
from snapline.engine.shell import Ticket
from snapline.ids import ChannelId, TaskId
from snapline.kernels.ages import buckets_of
from snapline.metrics.histogram import Histogram
from snapline.metrics.second import Volume
from snapline.runtime.slot.meter import Meter, backlog

pytestmark = pytest.mark.usefixtures("both_forms")

A, B = TaskId("a/0"), TaskId("b/0")


class Idle:
    """A slot without tasks."""

    epoch, running, tasks = 3, True, {}


def pulse(meter):
    return meter.pulse(Idle(), 0)


def message(records, header=b""):
    return Message(ChannelId("a>b"), 1, 1, Batch.of(n=list(range(records))), header)


def test_a_pulse_carries_what_was_done_since_the_last_one():
    meter = Meter()
    meter.ingested(7)
    meter.ingested(3)
    meter.transmitted(100)
    meter.wrote(Batch.of(time=[10, 20]), now_us=25_000)
    said = pulse(meter)
    assert (said.epoch, said.running, said.read, said.written) == (3, True, 10, 2)
    assert said.volume == Volume(wire=100, output=16)
    latency = Histogram.of_pairs(said.latency)
    assert latency.percentile(50) == pytest.approx(5_000, rel=0.02)
    assert latency.percentile(100) == pytest.approx(15_000, rel=0.02)
    again = pulse(meter)
    assert (again.read, again.written, again.volume, again.latency) == (0, 0, Volume(), ())


def test_latency_is_counted_however_much_is_written_between_two_pulses():
    meter = Meter()
    for at_ms in range(4):
        meter.wrote(Batch.of(time=[at_ms] * 3), now_us=at_ms * 1000 + 7)
    assert pulse(meter).latency == ((7, 12),)


def test_rows_without_a_time_are_written_without_latency():
    meter = Meter()
    meter.wrote(Batch.of(count=[1, 2, 3]), now_us=1)
    said = pulse(meter)
    assert (said.written, said.latency) == (3, ())


def test_a_message_counts_at_its_size_and_in_the_log_at_what_was_stored_of_it():
    meter = Meter()
    meter.sent(message(10, b"clock"), logged=0)
    meter.sent(message(1), logged=3)
    assert pulse(meter).volume == Volume(messages=93, headers=5, log=3)


def test_a_checkpoint_takes_from_its_trigger_until_it_is_durable():
    meter = Meter()
    for task, number, at_us in ((A, 1, 100), (B, 1, 250), (A, 2, 300)):
        meter.triggered(number, at_us)
        meter.storing(Ticket("snapshot", 1, task, number))
    meter.stored(CheckpointMeta(B, 1, bytes=40), 400)
    meter.stored(CheckpointMeta(A, 1, bytes=2), 500)
    meter.stored(CheckpointMeta(A, 2), 700)
    said = pulse(meter)
    assert said.checkpoint_us == (150, 400, 400)
    assert said.volume.snapshots == 42


def test_a_snapshot_that_is_stored_again_keeps_its_first_trigger():
    meter = Meter()
    meter.triggered(1, 100)
    meter.storing(Ticket("snapshot", 1, A, 1))
    meter.storing(Ticket("snapshot", 1, A, 1))
    meter.stored(CheckpointMeta(A, 1), 900)
    assert pulse(meter).checkpoint_us == (800,)


class Source:
    """A task that reads ten records a millisecond of each of its partitions."""

    def __init__(self, **offsets):
        self.plan = self
        self.ingress = self
        self.offsets = {int(name[1:]): offset for name, offset in offsets.items()}

    def due_through(self, partition, now_ms):
        return 10 * now_ms


class Count:
    """A task that reads no input."""

    class plan:
        ingress = None

    offsets = {}  # noqa: RUF012


def test_the_backlog_is_what_is_due_at_sources_and_was_not_read():
    assert backlog([Source(p0=30, p1=50), Count(), Source(p2=49)], now_ms=5) == 21


@pytest.mark.parametrize("times", [[7], [5, 5, 5, 9, 6, 5], [1, 1_000, 500], list(range(50)) * 3])
def test_each_record_is_counted_with_its_own_age(times):
    meter = Meter()
    meter.wrote(Batch.of(time=times), now_us=2_000_000)
    meter.wrote(Batch.of(time=[3]), now_us=3_000_000)
    expected = Histogram()
    ages = np.array([2_000_000 - 1000 * time for time in times] + [2_997_000])
    np.add.at(expected.counts, buckets_of(ages), 1)
    assert Histogram.of_pairs(pulse(meter).latency) == expected


@pytest.mark.parametrize("records", [1, 3, 100])
def test_times_are_counted_as_they_lie_and_whatever_whole_numbers_they_are(records):
    times = np.arange(2 * records)
    meters = [Meter() for _ in range(3)]
    for meter, column in zip(
        meters, (times[::2].copy(), times[::2], times[::2].astype(np.int32)), strict=True
    ):
        meter.wrote(Batch.of(time=column), now_us=5_000_000)
    first, *others = [pulse(meter).latency for meter in meters]
    assert sum(count for _, count in first) == records
    assert others == [first, first]
