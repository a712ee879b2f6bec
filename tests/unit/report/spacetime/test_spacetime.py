"""The space-time diagram: that every mark stands for something in the journal, and nothing is missing."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from toy_journal import toy_run

from snapline.batch import Batch
from snapline.core.effects import (
    Block,
    Commit,
    Deliver,
    Forward,
    Rollback,
    Scope,
    Snapshot,
    Unblock,
)
from snapline.core.events import (
    JobStarted,
    LocalCheckpoint,
    MarkerArrived,
    MessageArrived,
    Quiet,
    SnapshotStored,
    Started,
    TasksLost,
    TimerFired,
)
from snapline.core.messages import CheckpointMeta, Marker, Message, RecoveryLine, Stamp
from snapline.core.topology import Channel, Topology
from snapline.ids import INITIAL, ChannelId, TaskId, first_checkpoint
from snapline.journal.entry import COORDINATOR, Handled, Happened, Stamped
from snapline.journal.fault_happenings import (
    ConnectionCut,
    CoordinatorKilled,
    CoordinatorResumed,
    LaunchTroubled,
    ProcessContinued,
    ProcessKilled,
    ProcessPaused,
    Slowed,
)
from snapline.journal.happenings import (
    JobRunning,
    JobStopped,
    MessageReplayed,
    SlotLaunched,
    SlotRestored,
)
from snapline.report.spacetime.draw import draw, interesting_window

SVG = "{http://www.w3.org/2000/svg}"
P, Q = TaskId("p/0"), TaskId("q/1")
PQ = ChannelId("p/0>q/1")
PAIR = Topology((P, Q), (Channel(PQ, P, Q),))
C1, C2 = first_checkpoint(1), first_checkpoint(1) + 1


def at(ms, actor, event, *effects, epoch=1):
    return Handled(ms * 1000, actor, epoch, 1, event, effects)


def happened(ms, actor, what, epoch=1):
    return Happened(ms * 1000, actor, epoch, what)


def sent(ms, seq, epoch=1):
    return Stamped(ms * 1000, P, epoch, 1, PQ, seq, Stamp(), 1)


def taken(ms, seq, *before, epoch=1):
    message = Message(PQ, seq, epoch, Batch({}, 1))
    return at(ms, Q, MessageArrived(message), *before, Deliver(message), epoch=epoch)


def saved(ms, task, checkpoint, **counters):
    return at(ms, COORDINATOR, SnapshotStored(CheckpointMeta(task, checkpoint, **counters)))


def local(ms, task, checkpoint, *, forced=False):
    return at(ms, task, TimerFired(LocalCheckpoint()), Snapshot(checkpoint, forced=forced))


def back(ms, line, scope=Scope.ALL):
    return at(ms, COORDINATOR, TasksLost((Q,)), Rollback(RecoveryLine(line), scope))


def picture(entries, topology=PAIR, title="a run", **window):
    return ElementTree.fromstring(draw(entries, topology, title=title, **window))


def marks(drawn, kind):
    """The marks with a tooltip of one class: legend samples have none."""
    groups = [g for g in drawn.iter(f"{SVG}g") if kind in g.get("class", "").split()]
    return [g for g in groups if g.find(f"{SVG}title") is not None]


def tips(drawn, kind):
    return [mark.find(f"{SVG}title").text for mark in marks(drawn, kind)]


def shapes(drawn, kind):
    """The classes of the checkpoint glyphs."""
    return [g[1].get("class") for g in marks(drawn, kind)]


def words(drawn, kind):
    return [t.text for t in drawn.iter(f"{SVG}text") if kind in t.get("class", "").split()]


def test_a_message_that_was_delivered_is_an_arrow_from_sender_to_receiver():
    drawn = picture([sent(1, 1), sent(2, 2), taken(5, 1), taken(6, 2)])
    assert tips(drawn, "message") == [
        "p/0>q/1 no. 1, epoch 1: sent 1.0 ms, handled 5.0 ms",
        "p/0>q/1 no. 2, epoch 1: sent 2.0 ms, handled 6.0 ms",
    ]
    first = marks(drawn, "message")[0].find(f"{SVG}path").get("d")
    x1, y1, x2, y2 = map(float, re.findall(r"[\d.]+", first))
    assert x1 < x2
    assert y1 < y2


def test_the_same_number_in_another_epoch_is_another_message():
    entries = [sent(1, 1), back(3, {P: INITIAL, Q: INITIAL}), taken(5, 1, epoch=2)]
    drawn = picture(entries)
    assert marks(drawn, "message") == []
    assert tips(drawn, "lost") == ["p/0>q/1 no. 1, epoch 1: sent 1.0 ms, lost under way"]


def test_a_number_that_is_sent_again_in_one_epoch_was_lost_before():
    drawn = picture([sent(1, 1), back(2, {P: INITIAL}, Scope.LOST), sent(4, 1), taken(6, 1)])
    assert tips(drawn, "lost") == ["p/0>q/1 no. 1, epoch 1: sent 1.0 ms, lost under way"]
    assert tips(drawn, "message") == ["p/0>q/1 no. 1, epoch 1: sent 4.0 ms, handled 6.0 ms"]


def test_a_message_that_is_under_way_at_the_end_is_not_called_lost():
    entries = [back(1, {P: INITIAL, Q: INITIAL}), sent(3, 1, epoch=2)]
    assert marks(picture(entries), "lost") == []


def test_a_marker_is_a_dashed_arrow_from_forward_to_arrival():
    drawn = picture(
        [
            at(1, P, TimerFired(LocalCheckpoint()), Snapshot(C1), Forward(Marker(C1))),
            at(4, Q, MarkerArrived(PQ, Marker(C1)), Snapshot(C1)),
        ]
    )
    assert tips(drawn, "marker") == ["marker 1.1 on p/0>q/1: sent 1.0 ms, handled 4.0 ms"]
    assert "message" not in words(drawn, "key")


def test_checkpoints_differ_by_durable_forced_and_skipped():
    drawn = picture(
        [
            local(1, P, C1),
            saved(2, P, C1),
            local(3, P, C2),
            saved(4, P, C2),
            taken(5, 1, Snapshot(C1, forced=True)),
            saved(6, Q, C1),
            local(7, Q, C2),
            back(8, {P: C1, Q: C1}),
        ]
    )
    assert sorted(shapes(drawn, "checkpoint")) == [
        "saved",
        "saved forced",
        "saved skipped",
        "unsaved",
    ]
    assert sorted(words(drawn, "number")) == ["1.1", "1.1", "1.2", "1.2"]
    assert len(list(drawn.iter(f"{SVG}circle"))) == 2  # a ring around each that was chosen
    assert words(drawn, "key") == [
        "checkpoint",
        "forced checkpoint",
        "never durable",
        "skipped",
        "recovery line, and what it undoes",
        "rollback",
        "down or restoring",
    ]


def test_a_checkpoint_that_an_earlier_rollback_chose_is_not_skipped_by_it():
    entries = [local(1, P, C1), saved(2, P, C1), back(3, {P: C1, Q: INITIAL})]
    drawn = picture(entries)
    assert shapes(drawn, "checkpoint") == ["saved"]
    assert words(drawn, "key")[0] == "checkpoint"
    assert "skipped" not in words(drawn, "key")
    assert "never durable" not in words(drawn, "key")


def test_an_orphan_was_received_in_a_newest_checkpoint_and_sent_in_none():
    drawn = picture(
        [
            sent(1, 1),
            local(2, P, C1),
            saved(3, P, C1, sent={PQ: 1}),
            sent(4, 2),
            taken(5, 1),
            taken(6, 2),
            local(7, Q, C1),
            saved(8, Q, C1, received={PQ: 2}),
            sent(9, 3),
            taken(10, 3),
            back(12, {P: C1, Q: INITIAL}),
        ]
    )
    assert [tip[:26] for tip in tips(drawn, "orphan")] == ["orphan p/0>q/1 no. 2, epoc"]
    assert len(marks(drawn, "message")) == 2
    assert "saved skipped" in shapes(drawn, "checkpoint")


def test_a_restart_alone_makes_no_orphans_and_no_epoch():
    entries = [sent(1, 1), taken(2, 1), local(3, Q, C1), saved(4, Q, C1, received={PQ: 1})]
    drawn = picture([*entries, back(5, {Q: INITIAL}, Scope.LOST)])
    assert marks(drawn, "orphan") == []
    assert words(drawn, "flag") == ["restart alone"]


def test_a_recovery_line_has_a_corner_per_task_from_top_to_bottom():
    entries = [local(4, P, C1), saved(5, P, C1), back(8, {P: C1, Q: INITIAL})]
    entries.insert(0, happened(0, COORDINATOR, JobRunning()))
    drawn = picture(entries)
    (line,) = [g[1] for g in marks(drawn, "recovery")]
    corners = [tuple(map(float, p.split(","))) for p in line.get("points").split()]
    assert len(corners) == 4
    assert [y for _, y in corners] == sorted(y for _, y in corners)
    assert corners[1][0] > corners[2][0]  # the initial state is where the timeline begins
    assert tips(drawn, "origin") == ["q/1 goes back to its initial state"]
    assert words(drawn, "flag") == ["recovery line 1"]


def test_a_replayed_message_is_an_arrow_from_the_replay_to_its_delivery():
    message = Message(PQ, 7, 2, Batch({}, 1))
    replayed = happened(3, P, MessageReplayed(message=message), epoch=2)
    drawn = picture([replayed, taken(5, 7, epoch=2)])
    assert tips(drawn, "replayed") == [
        "replayed p/0>q/1 no. 7, epoch 2: sent 3.0 ms, handled 5.0 ms"
    ]


def test_a_crash_breaks_the_timelines_of_its_slot_until_it_is_restored():
    entries = [at(0, COORDINATOR, JobStarted(C1)), happened(2, "slot/1", ProcessKilled())]
    entries += [
        happened(6, "slot/0", SlotRestored(1)),
        happened(8, "slot/1", SlotRestored(1)),
    ]
    drawn = picture([*entries, at(10, COORDINATOR, Quiet())])
    assert tips(drawn, "crash") == ["slot/1 is killed at 2.0 ms"]
    assert tips(drawn, "down") == ["slot/1 killed for 6.0 ms"]


def test_a_slot_that_is_launched_does_not_live_before_it_is_restored():
    drawn = picture(
        [
            happened(1, "slot/0", SlotLaunched(1)),
            happened(4, "slot/0", SlotRestored(1)),
        ]
    )
    assert tips(drawn, "down") == ["slot/0 starting for 3.0 ms"]


def test_the_job_that_runs_again_ends_every_break():
    entries = [happened(2, "slot/1", ProcessKilled()), back(3, {P: INITIAL, Q: INITIAL})]
    drawn = picture([*entries, happened(7, COORDINATOR, JobRunning()), at(9, P, Started())])
    assert sorted(tips(drawn, "down")) == ["restoring for 4.0 ms", "slot/1 killed for 5.0 ms"]


def test_a_survivor_lives_until_the_order_to_go_back_reaches_it():
    entries = [sent(1, 1), back(3, {P: INITIAL, Q: INITIAL}), taken(5, 1)]
    drawn = picture([*entries, at(8, P, Started(), epoch=2), at(9, Q, Started(), epoch=2)])
    assert sorted(tips(drawn, "down")) == ["restoring for 4.0 ms", "restoring for 5.0 ms"]
    assert len(marks(drawn, "message")) == 1


def test_pauses_and_blocked_channels_are_bars():
    drawn = picture(
        [
            happened(1, "slot/0", ProcessPaused()),
            at(2, Q, MarkerArrived(PQ, Marker(C1)), Block(PQ)),
            happened(4, "slot/0", ProcessContinued()),
            at(5, Q, TimerFired(LocalCheckpoint()), Unblock(PQ)),
        ]
    )
    assert tips(drawn, "stretch") == ["slot/0 paused for 3.0 ms", "p/0>q/1 blocked for 3.0 ms"]
    assert words(drawn, "key") == ["channel blocked", "paused"]


def test_a_slot_that_is_killed_is_no_longer_paused():
    entries = [happened(1, "slot/0", ProcessPaused()), happened(3, "slot/0", ProcessKilled())]
    drawn = picture([*entries, at(9, Q, Started())])
    assert tips(drawn, "stretch") == ["slot/0 paused for 2.0 ms"]
    assert tips(drawn, "down") == ["slot/0 killed for 6.0 ms"]


def test_what_was_blocked_is_free_after_a_rollback():
    entries = [at(2, Q, MarkerArrived(PQ, Marker(C1)), Block(PQ))]
    entries += [back(4, {P: INITIAL, Q: INITIAL}), at(9, P, Started(), epoch=2)]
    assert tips(picture(entries), "stretch") == ["p/0>q/1 blocked for 2.0 ms"]


def test_commits_tell_how_many_rows_of_output_they_add():
    entries = []
    for ms, number, rows in ((1, C1, 40), (5, C2, 1_100)):
        meta = CheckpointMeta(Q, number, position=rows)
        line = RecoveryLine({P: number, Q: number})
        entries.append(at(ms, COORDINATOR, SnapshotStored(meta), Commit(line)))
    drawn = picture(entries)
    assert words(drawn, "count") == ["+40", "+1,060"]
    assert len(marks(drawn, "commit")) == 2


def test_the_rows_of_a_commit_give_way_to_a_rollback():
    stored = SnapshotStored(CheckpointMeta(Q, C1, position=40))
    commit = at(98, COORDINATOR, stored, Commit(RecoveryLine({P: C1, Q: C1})))
    drawn = picture([happened(0, COORDINATOR, JobRunning()), commit, back(100, {P: C1, Q: C1})])
    assert words(drawn, "count") == []
    assert tips(drawn, "commit") == ["line committed, 40 rows of output at 98.0 ms"]


def test_the_coordinator_may_die_and_resume():
    entries = [
        happened(0, COORDINATOR, JobRunning()),
        happened(2, COORDINATOR, CoordinatorKilled()),
    ]
    drawn = picture([*entries, happened(6, COORDINATOR, CoordinatorResumed())])
    assert tips(drawn, "crash") == ["the coordinator is killed at 2.0 ms"]
    assert tips(drawn, "down") == ["coordinator killed for 4.0 ms"]
    assert len(marks(drawn, "resumed")) == 1


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (ConnectionCut("cut slot=1 ...", (0, None)), "is cut off from slot/0, the coordinator"),
        (Slowed("delay slot=1 ...", 30), "is slower by 30 ms"),
        (LaunchTroubled("launch failing ..."), "goes wrong from now on"),
    ],
)
def test_other_faults_are_warnings(what, said):
    drawn = picture([happened(1, "slot/1", what)])
    (tip,) = tips(drawn, "fault")
    assert said in tip
    assert tip.endswith(f"({what.fault}) at 1.0 ms")


def test_text_is_escaped():
    odd = TaskId("<a>&b/0")
    topology = Topology((odd, Q), (Channel(PQ, odd, Q),))
    entries = [happened(1, "slot/0", Slowed('"<&>"', 1))]
    drawn = picture(entries, topology, title="a < b & c")
    assert words(drawn, "heading") == ["a < b & c"]
    assert "<a>&b" in words(drawn, "operator")
    assert tips(drawn, "fault") == ['slot/0 is slower by 1 ms ("<&>") at 1.0 ms']


def test_only_what_happens_in_the_window_is_drawn_and_counted():
    entries = [e for n in range(1, 11) for e in (sent(10 * n, n), taken(10 * n + 4, n))]
    entries[2:2] = [happened(12, "slot/0", ProcessKilled()), back(13, {P: INITIAL, Q: INITIAL})]
    entries[4:4] = [happened(14, COORDINATOR, JobRunning()), local(14, P, C1)]
    drawn = picture(entries, since_us=30_000, until_us=61_000)
    assert len(marks(drawn, "message")) == 4  # the last one is cut off by the border
    assert words(drawn, "caption")[0].startswith("4 messages")
    assert words(drawn, "axis")[0] == "30"
    assert words(drawn, "key") == ["message"]


def test_a_line_that_goes_back_beyond_the_window_points_out_of_it():
    entries = [local(1, P, C1), saved(2, P, C1), back(50, {P: C1, Q: INITIAL})]
    drawn = picture(entries, since_us=20_000)
    assert tips(drawn, "origin") == ["p/0 goes back to 1.1", "q/1 goes back to its initial state"]
    assert marks(drawn, "checkpoint") == []


def test_a_loop_of_one_task_is_an_arc():
    loop = ChannelId("p/0>p/0")
    topology = Topology((P,), (Channel(loop, P, P, feedback=True),))
    message = Message(loop, 1, 1, Batch({}, 1))
    entries = [Stamped(0, P, 1, 1, loop, 1, Stamp(), 1)]
    entries.append(at(2, P, MessageArrived(message), Deliver(message)))
    (arrow,) = marks(picture(entries, topology), "message")
    assert re.fullmatch(r"M[\d. ]+Q[\d. ]+", arrow.find(f"{SVG}path").get("d"))


def test_an_empty_journal_is_an_empty_diagram():
    assert words(picture([]), "caption")[0].startswith("0 messages")


def test_the_caption_counts_what_is_drawn():
    entries, topology = toy_run(markers=False)
    drawn = picture(entries, topology)
    told = [int(n) for n in re.findall(r"\d+", words(drawn, "caption")[0])]
    travels = [len(marks(drawn, kind)) for kind in ("message", "orphan", "lost")]
    forced = sum("forced" in shape for shape in shapes(drawn, "checkpoint"))
    assert told[:5] == [
        sum(travels),
        len(marks(drawn, "checkpoint")),
        forced,
        len(marks(drawn, "rollback")),
        len(marks(drawn, "replayed")),
    ]
    assert all(told[:5])


@pytest.mark.parametrize("markers", [True, False])
def test_every_delivery_and_every_snapshot_of_a_run_is_drawn(markers):
    entries, topology = toy_run(markers=markers)
    drawn = picture(entries, topology)
    handled = [entry for entry in entries if isinstance(entry, Handled)]
    deliveries = sum(isinstance(entry.event, MessageArrived) for entry in handled)
    snapshots = sum(isinstance(effect, Snapshot) for e in handled for effect in e.effects)
    arrived = sum(isinstance(entry.event, MarkerArrived) for entry in handled)
    arrows = [len(marks(drawn, kind)) for kind in ("message", "orphan", "replayed")]
    assert sum(arrows) == deliveries > 100
    assert len(marks(drawn, "checkpoint")) == snapshots > 20
    assert len(marks(drawn, "marker")) == arrived
    assert len(marks(drawn, "crash")) == 3


@pytest.mark.parametrize("markers", [True, False])
def test_labels_do_not_overlap(markers):
    entries, topology = toy_run(markers=markers)
    drawn = picture(entries, topology)
    boxes = []
    for text in drawn.iter(f"{SVG}text"):
        if {"number", "count", "flag"} & set(text.get("class", "").split()):
            x, y = float(text.get("x")), float(text.get("y"))
            boxes.append((x, y - 8, x + 5 * len(text.text), y))
    assert len(boxes) > 20
    for i, one in enumerate(boxes):
        for two in boxes[i + 1 :]:
            assert not (one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3])


def test_the_number_of_a_checkpoint_stands_beside_the_recovery_line_not_on_it():
    entries = [happened(0, COORDINATOR, JobRunning()), local(22, P, C1), saved(23, P, C1)]
    entries += [local(19, Q, C1), saved(24, Q, C1), back(40, {P: C1, Q: C1})]
    drawn = picture(sorted(entries, key=lambda entry: entry.at_us))
    (line,) = [g[1] for g in marks(drawn, "recovery")]
    (x1, y1), (x2, y2) = [tuple(map(float, p.split(","))) for p in line.get("points").split()][1:3]
    for text in drawn.iter(f"{SVG}text"):
        if "number" in text.get("class", "") and y1 < float(text.get("y")) < y2:
            x, y = float(text.get("x")), float(text.get("y")) - 4
            there = x1 + (y - y1) / (y2 - y1) * (x2 - x1)
            assert not x <= there <= x + 16


def test_a_drawing_refers_to_nothing_outside_of_itself():
    entries, topology = toy_run(markers=True)
    drawn = draw(entries, topology, title="self-contained")
    assert re.findall(r"https?://[^\"]+", drawn) == ["http://www.w3.org/2000/svg"]
    for forbidden in ("<script", "@import", "@font-face", "href", "<image"):
        assert forbidden not in drawn
    names = dict.fromkeys(re.findall(r' id="([^"]+)"', drawn))
    assert all(name in names for name in re.findall(r"url\(#([^)]+)\)", drawn))


def test_two_drawings_in_one_page_share_no_names():
    one, two = (draw([sent(1, 1)], PAIR, title=title) for title in ("one", "two"))
    names = [re.findall(r' id="([^"]+)"', drawn) for drawn in (one, two)]
    assert not [name for name in names[0] if name in names[1]]


def test_the_drawing_does_not_depend_on_the_hash_seed():
    program = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from toy_journal import toy_run\n"
        "from snapline.report.spacetime.draw import draw\n"
        "entries, topology = toy_run(markers=True)\n"
        "sys.stdout.write(draw(entries, topology, title='t'))\n"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1] != b""


def test_the_interesting_window_has_two_fifths_before_the_first_rollback():
    entries = [sent(10 * n, n) for n in range(1, 301)]
    entries += [local(1_700, Q, C1), local(1_800, P, C1), back(2_000, {P: C1, Q: C1})]
    entries += [back(2_500, {P: C1, Q: C1})]
    entries.sort(key=lambda entry: entry.at_us)
    assert interesting_window(entries) == (1_600_000, 2_600_000)


def test_the_interesting_window_is_wider_when_the_line_is_older():
    entries = [happened(0, COORDINATOR, JobRunning()), local(1_000, Q, C1)]
    entries += [back(2_000, {Q: C1}), happened(9_000, COORDINATOR, JobStopped("no line"))]
    assert interesting_window(entries) == (900_000, 3_650_000)


def test_the_interesting_window_is_narrower_when_there_is_too_much_to_see():
    entries = [sent(n, n) for n in range(1, 1_000)]
    entries.append(back(1_000, {P: INITIAL, Q: INITIAL}))
    since, until = interesting_window(entries)
    assert (since, until) == (880_000, 1_000_000)


def test_without_a_rollback_the_end_of_the_run_is_interesting():
    entries = [
        happened(0, COORDINATOR, JobRunning()),
        happened(5_000, COORDINATOR, JobStopped("no line")),
    ]
    assert interesting_window(entries) == (4_000_000, 5_000_000)
    assert interesting_window([]) == (0, 0)
