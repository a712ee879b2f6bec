"""What a slot measures, batch by batch."""

import numpy as np
import pytest

from snapline.batch import Batch
from snapline.core.messages import CheckpointMeta, Marker, Message
from snapline.engine.control import Credit, Frame, Restored, Stored
from snapline.ids import ChannelId, TaskId
from snapline.kernels.ages import buckets_of
from snapline.metrics.histogram import Histogram
from snapline.metrics.second import Volume
from snapline.runtime.counted_store import CountedStore
from snapline.runtime.resources import Resources
from snapline.runtime.slot.meter import Meter, backlog
from snapline.runtime.wire.codec import Wire
from snapline.runtime.wire.control_messages import Heartbeat
from snapline.storage.memory import MemoryStore

pytestmark = pytest.mark.usefixtures("both_forms")

A, B = TaskId("a/0"), TaskId("b/0")
AB = ChannelId("a>b")


class Idle:
    """A slot without tasks."""

    epoch, running, tasks = 3, True, {}


def a_meter():
    return Meter(Wire(), Resources(CountedStore(MemoryStore())))


def pulse(meter):
    return meter.pulse(Idle(), 0)


def message(records, header=b""):
    return Message(AB, 1, 1, Batch.of(n=list(range(records))), header)


def test_a_pulse_carries_what_was_done_since_the_last_one():
    meter = a_meter()
    meter.ingested(7, 21_000)
    meter.ingested(2, 22_000)
    meter.ingested(1, 24_000)
    meter.transmitted(100)
    meter.wrote(Batch.of(time=[10, 20]), now_us=25_000)
    said = pulse(meter)
    assert (said.epoch, said.running, said.read, said.written) == (3, True, 10, 2)
    assert (said.first_us, said.last_us) == (21_000, 24_000)
    assert said.volume == Volume(wire=100, output=16)
    latency = Histogram.of_pairs(said.latency)
    assert latency.percentile(50) == pytest.approx(5_000, rel=0.02)
    assert latency.percentile(100) == pytest.approx(15_000, rel=0.02)
    again = pulse(meter)
    assert (again.read, again.written, again.volume, again.latency) == (0, 0, Volume(), ())
    assert (again.first_us, again.last_us) == (None, None)


def test_latency_is_counted_however_much_is_written_between_two_pulses():
    meter = a_meter()
    for at_ms in range(4):
        meter.wrote(Batch.of(time=[at_ms] * 3), now_us=at_ms * 1000 + 7)
    assert pulse(meter).latency == ((7, 12),)


def test_rows_without_a_time_are_written_without_latency():
    meter = a_meter()
    meter.wrote(Batch.of(count=[1, 2, 3]), now_us=1)
    said = pulse(meter)
    assert (said.written, said.latency) == (3, ())


def test_a_message_counts_at_its_size_and_in_the_log_at_what_was_stored_of_it():
    meter = a_meter()
    meter.sent(message(10, b"clock"), logged=0)
    meter.sent(message(1), logged=3)
    assert pulse(meter).volume == Volume(payload=88, headers=5, log=3)


def test_a_marker_counts_on_every_channel_at_the_size_of_its_frame():
    meter = a_meter()
    meter.marked(3)
    frame = Frame(AB, (1, 1, 1), Marker(7))
    assert pulse(meter).volume == Volume(markers=3 * Wire([AB]).pack(frame).size)


def test_what_is_said_counts_once_and_reports_of_checkpoints_apart():
    wire = Wire([AB])
    meter = Meter(wire, Resources(CountedStore(MemoryStore())))
    said = [Heartbeat(1), Frame(AB, (1, 1, 1), Credit(4)), Restored(1)]
    control = sum(wire.pack(each).size for each in said)
    metadata = wire.pack(Stored(1, CheckpointMeta(A, 1))).size
    wire.pack(Frame(AB, (1, 1, 1), message(3)))
    wire.pack(Frame(AB, (1, 1, 1), Marker(7)))
    first = meter.pulse(Idle(), 0)
    assert first.volume == Volume(control=control, metadata=metadata)
    again = wire.pack(first).size
    assert meter.pulse(Idle(), 0).volume == Volume(control=again)


def test_a_checkpoint_takes_from_its_trigger_until_it_is_durable():
    meter = a_meter()
    for task, number, at_us in ((A, 1, 100), (B, 1, 250), (A, 2, 300)):
        meter.clock.taking(at_us)
        meter.clock.captured(task, number, at_us + 10)
    meter.stored(CheckpointMeta(B, 1, bytes=40), 400)
    meter.stored(CheckpointMeta(A, 1, bytes=2), 500)
    meter.stored(CheckpointMeta(A, 2), 700)
    said = pulse(meter)
    assert said.checkpoint_us == (150, 400, 400)
    assert said.volume.snapshots == 42


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
    meter = a_meter()
    meter.wrote(Batch.of(time=times), now_us=2_000_000)
    meter.wrote(Batch.of(time=[3]), now_us=3_000_000)
    expected = Histogram()
    ages = np.array([2_000_000 - 1000 * time for time in times] + [2_997_000])
    np.add.at(expected.counts, buckets_of(ages), 1)
    assert Histogram.of_pairs(pulse(meter).latency) == expected


@pytest.mark.parametrize("records", [1, 3, 100])
def test_times_are_counted_as_they_lie_and_whatever_whole_numbers_they_are(records):
    times = np.arange(2 * records)
    meters = [a_meter() for _ in range(3)]
    for meter, column in zip(
        meters, (times[::2].copy(), times[::2], times[::2].astype(np.int32)), strict=True
    ):
        meter.wrote(Batch.of(time=column), now_us=5_000_000)
    first, *others = [pulse(meter).latency for meter in meters]
    assert sum(count for _, count in first) == records
    assert others == [first, first]
