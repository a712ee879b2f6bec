"""The way of a checkpoint from capture to counted: whole, durable, and behind all earlier ones."""

import numpy as np
import pytest

from engine_fakes import AB, A, ShellSpy, meta
from engine_fakes import message as sent
from snapline.batch import Batch
from snapline.core.effects import Record, Snapshot
from snapline.core.messages import Marker
from snapline.dataflow.operators.operator import Capture
from snapline.engine.control import NotStored, Stored
from snapline.engine.shell import RetryAlarm, Ticket
from snapline.engine.slot.checkpoints import CheckpointWriter, snapshot_key
from snapline.errors import ProtocolViolation
from snapline.ids import ChannelId
from snapline.storage import codec, packing
from snapline.storage.api import Life
from snapline.storage.codec import decode_snapshot, digest_of

LIFE = Life(A, 3, 2)
LOOP = ChannelId("loop")


class EgressSpy:
    """Counts the cuts."""

    def __init__(self):
        self.cuts = 0

    def cut(self):
        self.cuts += 1


class Scene:
    """The writer of a task whose operator can make deltas."""

    def __init__(self, *, sink=False, full_every=2, compress=False):
        self.shell = ShellSpy()
        self.log, self.egress = object(), EgressSpy() if sink else None
        self.writer = CheckpointWriter(
            LIFE, self.shell, self.log, self.egress, full_every, 30, compress
        )

    # What the writer asks of its task.

    def capture(self, *, full):
        return Capture(full, {"state": Batch.of(n=[1, 2])})

    def meta(self, effect):
        return meta("a", effect.checkpoint, received={AB: 4}, epoch=3, incarnation=2)

    # What a test does.

    def take(self, number, **snapshot):
        self.writer.take(self, Snapshot(number, **snapshot))

    def done(self, kind, number):
        """Let one call to storage succeed; the checkpoints that count because of it."""
        self.writer.done(Ticket(kind, 3, A, number))
        return self.counted()

    def counted(self):
        reports = [call[1] for call in self.shell.taken() if call[0] == "report"]
        return [report.meta.checkpoint for report in reports if isinstance(report, Stored)]

    def stored(self):
        """What was asked to be stored since the last look: number and content."""
        calls = [call for call in self.shell.taken() if call[0] == "store"]
        return [(ticket.number, decode_snapshot(bytes(data()))) for _, ticket, _, data in calls]

    def report_of(self, number):
        """Let everything succeed; the metadata that is reported."""
        for kind in ("snapshot", "log"):
            self.writer.done(Ticket(kind, 3, A, number))
        [report] = [call[1] for call in self.shell.taken() if call[0] == "report"]
        return report.meta


# Durable before counted.


def test_a_snapshot_and_the_log_are_made_durable():
    scene = Scene()
    scene.take(7, memo=b"memory")
    [store, sync] = scene.shell.taken()
    assert store[:3] == ("store", Ticket("snapshot", 3, A, 7), snapshot_key(LIFE, 7))
    assert decode_snapshot(bytes(store[3]())).memo == b"memory"
    assert sync == ("sync", Ticket("log", 3, A, 7), scene.log)


@pytest.mark.parametrize("order", [("snapshot", "log", "egress"), ("egress", "log", "snapshot")])
def test_a_checkpoint_of_a_sink_counts_once_snapshot_log_and_egress_are_durable(order):
    scene = Scene(sink=True)
    scene.take(7)
    assert ("sync", Ticket("egress", 3, A, 7), scene.egress) in scene.shell.taken()
    assert [scene.done(kind, 7) for kind in order] == [[], [], [7]]


def test_output_is_cut_where_a_checkpoint_is_taken_however_long_its_snapshot_stays_open():
    scene = Scene(sink=True)
    scene.take(7, open=True)
    assert (scene.egress.cuts, scene.shell.taken()) == (1, [])
    scene.writer.seal(7)
    assert ("sync", Ticket("egress", 3, A, 7), scene.egress) in scene.shell.taken()
    assert scene.egress.cuts == 1


def test_what_is_reported_are_the_counters_of_the_capture_and_the_bytes_that_were_stored():
    scene = Scene()
    scene.take(7, forced=True)
    data = bytes(scene.shell.taken()[0][3]())
    reported = scene.report_of(7)
    assert (reported.received, reported.parent) == ({AB: 4}, None)
    assert (reported.bytes, reported.digest) == (len(data), digest_of(data))


def test_a_snapshot_is_compressed_by_whoever_stores_it_and_counts_at_the_bytes_that_are_stored(
    monkeypatch,
):
    packed = []
    pack = packing.pack
    monkeypatch.setattr(codec, "pack", lambda *given: packed.append(1) or pack(*given))
    scene = Scene(compress=True)
    scene.take(7, memo=bytes(10_000))
    assert packed == [], "not in the loop"
    data = bytes(scene.shell.taken()[0][3]())
    assert packed == [1]
    assert len(data) < 1_000
    assert decode_snapshot(data).memo == bytes(10_000)
    reported = scene.report_of(7)
    assert (reported.bytes, reported.digest) == (len(data), digest_of(data))


def test_a_checkpoint_counts_only_after_all_earlier_ones_of_its_task():
    scene = Scene()
    for number in (1, 2, 3):
        scene.take(number)
    scene.shell.taken()
    assert [scene.done(kind, 3) for kind in ("snapshot", "log")] == [[], []]
    assert [scene.done(kind, 2) for kind in ("snapshot", "log")] == [[], []]
    assert [scene.done(kind, 1) for kind in ("snapshot", "log")] == [[], [1, 2, 3]]


def test_a_call_that_fails_is_told_and_made_again():
    scene = Scene()
    scene.take(7)
    store, _ = scene.shell.taken()
    ticket = store[1]
    scene.writer.failed(ticket)
    assert scene.shell.taken() == [
        ("report", NotStored(3, A, 7)),
        ("set_alarm", RetryAlarm(ticket), 30),
    ]
    scene.writer.retry(ticket)
    assert scene.shell.taken() == [store]
    scene.done("log", 7)
    assert scene.done("snapshot", 7) == [7]


# Deltas.


def test_the_first_capture_is_full_and_so_many_deltas_follow_each_full_one():
    scene = Scene(full_every=2)
    for number in range(1, 6):
        scene.take(number)
    assert [snapshot.full for _, snapshot in scene.stored()] == [True, False, False, True, False]
    assert [scene.report_of(n).parent for n in range(1, 6)] == [None, 1, 2, None, 4]


@pytest.mark.parametrize(
    ("full_rows", "delta_rows", "expected"),
    [
        (1_000_000, 300_000, [True, False, False, False, False, True, False]),
        (1_000_000, 100_000, [True] + 6 * [False]),
        (10, 200_000, [True, False, False, False, True, False, False]),
        (10, 80_000, [True] + 6 * [False]),  # more than the state, but not much
    ],
)
def test_deltas_that_hold_much_more_than_the_state_end_in_a_full_capture(
    full_rows, delta_rows, expected
):
    scene = Scene(full_every=100)
    scene.capture = lambda *, full: Capture(
        full, {"state": Batch.of(n=np.zeros(full_rows if full else delta_rows, np.int64))}
    )
    for number in range(1, 8):
        scene.take(number)
    assert [snapshot.full for _, snapshot in scene.stored()] == expected


def fulls(scene, count):
    """The numbers of the checkpoints with a full capture, of so many."""
    for number in range(1, count + 1):
        scene.take(number)
    return [n for n, (_, snapshot) in enumerate(scene.stored(), 1) if snapshot.full]


def test_the_larger_a_state_the_more_deltas_follow_a_full_capture_of_it():
    scene = Scene(full_every=2)
    scene.capture = lambda *, full: Capture(
        full, {"state": Batch.of(n=np.zeros(2_000_000 if full else 10, np.int64))}
    )
    assert fulls(scene, 14) == [1, 8]  # 16 MB: 3 whole times 4, and two deltas for each


@pytest.mark.parametrize(("grown", "expected"), [(True, [1]), (False, [1, 4, 7, 10])])
def test_a_state_that_only_grows_is_not_written_again(grown, expected):
    scene = Scene(full_every=2)
    part = Batch.of(n=np.zeros(600_000, np.int64))
    scene.capture = lambda *, full: Capture(
        full, {"state": part}, part.nbytes if grown and not full else 0
    )
    assert fulls(scene, 11) == expected


def test_not_even_a_large_state_is_a_chain_of_thousands(monkeypatch):
    monkeypatch.setattr("snapline.engine.slot.checkpoints.CHAIN_MAX", 5)
    scene = Scene(full_every=2)
    part = Batch.of(n=np.zeros(600_000, np.int64))
    scene.capture = lambda *, full: Capture(full, {"state": part}, 0 if full else part.nbytes)
    assert fulls(scene, 14) == [1, 7, 13]


def test_without_deltas_every_capture_is_full():
    scene = Scene(full_every=0)
    for number in (1, 2):
        scene.take(number)
    assert [snapshot.full for _, snapshot in scene.stored()] == [True, True]


def test_after_an_abandoned_checkpoint_the_next_capture_is_full():
    """What was captured for it is gone, so a delta would refer to nothing."""
    scene = Scene()
    scene.take(1)
    scene.take(2)
    scene.writer.abandon(2)
    scene.take(3)
    assert [(number, snapshot.full) for number, snapshot in scene.stored()] == [
        (1, True),
        (2, False),
        (3, True),
    ]


# Abandoning.


def test_an_abandoned_checkpoint_is_deleted_and_never_counts():
    scene = Scene()
    scene.take(7)
    scene.shell.taken()
    scene.writer.abandon(7)
    assert scene.shell.taken() == [("delete", snapshot_key(LIFE, 7))]
    assert [scene.done(kind, 7) for kind in ("snapshot", "log")] == [[], []]


def test_an_abandoned_checkpoint_is_neither_tried_again_nor_complained_about():
    scene = Scene()
    scene.take(7)
    scene.writer.abandon(7)
    scene.shell.taken()
    scene.writer.failed(Ticket("snapshot", 3, A, 7))
    scene.writer.retry(Ticket("snapshot", 3, A, 7))
    assert scene.shell.taken() == []


def test_a_checkpoint_on_which_a_delta_builds_already_is_stored_for_that_alone():
    scene = Scene()
    scene.take(1)
    scene.take(2)
    scene.shell.taken()
    scene.writer.abandon(1)
    assert scene.shell.taken() == []
    for kind in ("snapshot", "log"):
        scene.done(kind, 2)
    assert [scene.done(kind, 1) for kind in ("snapshot", "log")] == [[], [1, 2]]


def test_a_checkpoint_that_counts_already_cannot_be_abandoned():
    scene = Scene()
    scene.take(7)
    scene.report_of(7)
    scene.writer.abandon(7)
    assert scene.shell.taken() == []


def test_forgetting_abandons_all_that_is_pending():
    scene = Scene()
    scene.take(1)
    scene.take(2, open=True)
    scene.shell.taken()
    scene.writer.forget()
    assert scene.shell.taken() == [("delete", snapshot_key(LIFE, 1))]
    assert (scene.writer.pending, scene.writer.open) == ({}, None)


# Open snapshots.


def on_loop(seq):
    return sent(seq, LOOP)


def recording(*queued, through=None):
    """An open checkpoint 7 that records the loop, where 4 was the last message delivered."""
    scene = Scene()
    scene.take(7, open=True)
    scene.writer.record(Record(LOOP, through), 4, queued)
    return scene


def test_an_open_snapshot_is_stored_when_sealed_and_its_recordings_have_ended():
    scene = recording(on_loop(5))
    scene.writer.see(LOOP, on_loop(6))
    scene.writer.seal(7)
    assert scene.stored() == []
    scene.writer.see(LOOP, Marker(7))
    [(_, snapshot)] = scene.stored()
    assert [message.seq for message in snapshot.messages] == [5, 6]
    assert scene.report_of(7).channel_state == {LOOP: (4, 6)}


def test_a_recording_that_ended_before_the_seal_is_stored_with_the_seal():
    scene = recording(on_loop(5), Marker(7), on_loop(6))
    scene.writer.see(LOOP, on_loop(7))
    assert scene.stored() == []
    scene.writer.seal(7)
    [(_, snapshot)] = scene.stored()
    assert [message.seq for message in snapshot.messages] == [5]


def test_a_recording_through_a_number_ends_there_and_needs_no_marker():
    scene = recording(on_loop(5), through=6)
    scene.writer.seal(7)
    assert scene.stored() == []
    scene.writer.see(LOOP, on_loop(6))
    assert [number for number, _ in scene.stored()] == [7]
    assert scene.report_of(7).channel_state == {LOOP: (4, 6)}


def test_a_recording_of_nothing_leaves_no_channel_state():
    scene = recording(Marker(7))
    scene.writer.seal(7)
    assert [number for number, _ in scene.stored()] == [7]
    assert scene.report_of(7).channel_state == {}


def test_markers_of_older_rounds_do_not_end_a_recording():
    scene = recording(Marker(6), on_loop(5))
    scene.writer.seal(7)
    assert scene.stored() == []
    scene.writer.see(LOOP, Marker(7))
    assert scene.report_of(7).channel_state == {LOOP: (4, 5)}


def test_a_marker_of_a_later_round_abandons_the_open_snapshot():
    """The others gave its round up, so its own marker will never come."""
    scene = recording(on_loop(5))
    scene.writer.seal(7)
    scene.writer.see(LOOP, Marker(8))
    assert scene.writer.pending == {}
    scene.writer.see(LOOP, Marker(7))
    assert scene.stored() == []


def test_other_channels_are_not_recorded():
    scene = recording()
    scene.writer.see(AB, sent(5))
    scene.writer.see(LOOP, Marker(7))
    scene.writer.seal(7)
    [(_, snapshot)] = scene.stored()
    assert snapshot.messages == ()


def test_output_that_a_marker_overtook_joins_the_open_snapshot():
    scene = Scene()
    scene.take(7, open=True)
    scene.writer.overtook(AB, [sent(9), sent(10)])
    scene.writer.seal(7)
    [(_, snapshot)] = scene.stored()
    assert [message.seq for message in snapshot.messages] == [9, 10]
    assert scene.report_of(7).channel_state == {AB: (8, 10)}


def test_a_task_that_sends_to_itself_keeps_what_is_queued_and_what_was_overtaken():
    scene = recording(on_loop(5), through=5)
    scene.writer.overtook(LOOP, [on_loop(6), on_loop(7)])
    scene.writer.seal(7)
    assert scene.report_of(7).channel_state == {LOOP: (4, 7)}


def test_a_new_snapshot_abandons_one_that_is_still_open():
    scene = recording()
    scene.take(8)
    assert [number for number, _ in scene.stored()] == [8]
    assert scene.report_of(8).parent is None


def test_an_open_snapshot_does_not_count_with_the_one_before_it():
    scene = Scene()
    scene.take(6)
    scene.take(7, open=True)
    scene.shell.taken()
    assert [scene.done(kind, 6) for kind in ("snapshot", "log")] == [[], [6]]


def test_an_open_snapshot_holds_back_those_behind_it():
    """It counts before them or not at all."""
    scene = recording()
    scene.writer.seal(7)
    scene.shell.taken()
    assert scene.writer.open is not None
    scene.writer.see(LOOP, Marker(7))
    scene.take(8)
    scene.shell.taken()
    assert [scene.done(kind, 8) for kind in ("snapshot", "log")] == [[], []]
    assert [scene.done(kind, 7) for kind in ("snapshot", "log")] == [[], [7, 8]]


def test_recording_sealing_or_overtaking_without_an_open_snapshot_is_a_bug():
    scene = Scene()
    scene.take(7)
    with pytest.raises(ProtocolViolation, match="records loop into no open snapshot"):
        scene.writer.record(Record(LOOP), 4, [])
    with pytest.raises(ProtocolViolation, match="seals 7, which is not open"):
        scene.writer.seal(7)
    with pytest.raises(ProtocolViolation, match="overtakes output without an open snapshot"):
        scene.writer.overtook(AB, [sent(9)])


def test_recording_after_the_seal_is_a_bug():
    scene = recording()
    scene.writer.seal(7)
    with pytest.raises(ProtocolViolation, match="into no open snapshot"):
        scene.writer.record(Record(AB), 4, [])
