"""The largest consistent line: the papers' cases by name, and four ways of finding it that agree."""

import pytest
from hypothesis import given
from recovery_executions import (
    all_lines,
    at,
    brute_force_line,
    executions,
    line,
    parse,
    without_orphans,
)

from snapline.core.messages import CheckpointMeta
from snapline.core.topology import Topology
from snapline.errors import ProtocolViolation
from snapline.ids import TaskId
from snapline.recovery.checkpoint_graph import CheckpointGraph, checkpoint_graph
from snapline.recovery.line_tracker import LineTracker
from snapline.recovery.recovery_line import (
    Orphans,
    largest_line,
    orphans,
    rollback_propagation,
)
from snapline.recovery.replay import replay_ranges, skipped


def found(story):
    """The line of a story, found in every way that we have."""
    topology, metas = parse(story)
    tracker = LineTracker(topology)
    for meta in metas:
        tracker.add(meta)
    largest = largest_line(topology, metas)
    assert largest == rollback_propagation(checkpoint_graph(topology, metas)) == tracker.line
    return largest


def edges(story):
    """The edges of a story's checkpoint graph that join different tasks, as `p1 q2`."""
    graph = checkpoint_graph(*parse(story))
    return [
        f"{i}{x} {j}{y}" for (i, x), ends in graph.successors.items() for j, y in ends if i != j
    ]


# CheckMate, figure 2: three operators in a row and one checkpoint of each.

FIGURE_2A = "o1: s1 c1 | o2: r1 s2 c1 | o3: r2 c1"
FIGURE_2B = "o1: s1 c1 | o2: r1 c1 s2 | o3: r2 c1"
FIGURE_2C = "o1: s1 c1 | o2: r1 s2 c1 | o3: c1 r2"


def test_figure_2a_everything_received_was_sent_so_the_line_is_consistent():
    topology, metas = parse(FIGURE_2A)
    newest = at(metas, line(o1=1, o2=1, o3=1))
    assert orphans(topology, newest) == ()
    assert replay_ranges(topology, newest) == {}
    assert found(FIGURE_2A) == line(o1=1, o2=1, o3=1)


def test_figure_2b_a_message_received_but_not_sent_is_an_orphan():
    topology, metas = parse(FIGURE_2B)
    newest = at(metas, line(o1=1, o2=1, o3=1))
    assert orphans(topology, newest) == (Orphans("o2>o3", after=0, through=1),)
    assert found(FIGURE_2B) == line(o1=1, o2=1, o3=0)


def test_figure_2c_a_message_under_way_is_no_orphan():
    assert found(FIGURE_2C) == line(o1=1, o2=1, o3=1)


def test_figure_2d_a_message_under_way_must_be_replayed():
    topology, metas = parse(FIGURE_2C)
    assert replay_ranges(topology, at(metas, line(o1=1, o2=1, o3=1))) == {"o2>o3": (0, 1)}


FIGURE_5 = "o1: c1 s1 r3 c2 s4 r6 c3 | o2: c1 r1 s2 c2 r4 s5 c3 | o3: c1 r2 s3 r5 c2 s6"


def test_figure_5_every_checkpoint_on_the_cycle_falls_back_to_the_first():
    # m6 takes o1 back, then m4 o2, m5 o3, m3 o1 again, and m1 o2 again.
    assert found(FIGURE_5) == line(o1=1, o2=1, o3=1)
    topology, metas = parse(FIGURE_5)
    lost = [(m.task, m.checkpoint) for m in skipped(metas, line(o1=1, o2=1, o3=1))]
    assert lost == [("o1", 2), ("o1", 3), ("o2", 2), ("o2", 3), ("o3", 2)]
    for (o1, o2, o3), orphan in {
        (3, 3, 2): Orphans("o3>o1", 1, 2),  # m6
        (2, 3, 2): Orphans("o1>o2", 1, 2),  # m4
        (2, 2, 2): Orphans("o2>o3", 1, 2),  # m5
        (2, 2, 1): Orphans("o3>o1", 0, 1),  # m3
        (1, 2, 1): Orphans("o1>o2", 0, 1),  # m1
    }.items():
        assert orphans(topology, at(metas, line(o1=o1, o2=o2, o3=o3))) == (orphan,)


# The tests of the thesis, table 4.1, under their own names. Its cycle detection belongs to HMNR.

P, Q, R = ("p", 0), ("q", 0), ("r", 0)
LONELY = {TaskId("p"): (0,), TaskId("q"): (0,), TaskId("r"): (0,)}


def test_find_reachable_nodes_empty():
    graph = CheckpointGraph(LONELY, [(Q, R)])
    assert graph.reachable(P) == frozenset()


def test_find_reachable_nodes_non_empty():
    graph = CheckpointGraph(LONELY, [(P, Q)])
    assert graph.reachable(P) == {Q}


def test_find_reachable_nodes_recursion():
    graph = CheckpointGraph(LONELY, [(P, Q), (Q, R)])
    assert graph.reachable(Q) == {R}
    assert graph.reachable(P) == {Q, R}


def test_find_recovery_line():
    assert found("p: c1 s1 | q: c1 r1 c2") == line(p=1, q=1)


def test_find_recovery_line_no_orphan():
    assert found("p: c1 s1 c2 | q: c1 r1 c2") == line(p=2, q=2)


def test_find_recovery_line_domino():
    domino = "p: c1 s1 r2 c2 s3 r4 c3 | q: r1 c1 s2 r3 c2 s4"
    assert found(domino) == line(p=1, q=0)
    assert found(domino + " c3") == line(p=3, q=3)


def test_simple_edges():
    assert edges("p: s1 c1 s2 c2 | q: r1 c1 r2 c2") == ["p0 q1", "p0 q2", "p1 q2"]


def test_same_interval_ends():
    assert edges("p: s1 s2 c1 | q: r1 r2 c1") == ["p0 q1"]


def test_clear_checkpoint_details():
    topology, metas = parse("p: c1 c2 s1 c3 s2 | q: c1 c2 r1 c3 r2 c4")
    tracker = LineTracker(topology)
    for meta in metas:
        tracker.add(meta)
    assert [(m.task, m.checkpoint) for m in tracker.drop_beyond(tracker.line)] == [("q", 4)]
    tracker.forget_before(line(p=2, q=3))
    assert [(m.task, m.checkpoint) for m in tracker] == [("p", 2), ("p", 3), ("q", 3)]


def test_find_channels_to_replay():
    topology, metas = parse("p: s1 s2 s3 s9 c1 | q: r1 c1 r2 r3 s4 | r: r4 r9")
    assert replay_ranges(topology, at(metas, line(p=1, q=1, r=0))) == {
        "p>q": (1, 3),
        "p>r": (0, 1),
    }


# Corners.


def test_tasks_of_one_slot_count_like_all_others():
    topology, metas = parse("map/0: c1 s1 | sink/0: r1 c1")
    assert largest_line(topology, metas) == line(**{"map/0": 1, "sink/0": 0})


def test_a_channel_of_a_task_to_itself_holds_nobody_back():
    story = "p: s1 c1 r1 c2 s2 r2 c3 s3 | q: r3 c1"
    assert edges(story) == ["p0 q1", "p1 q1", "p2 q1", "p3 q1"]
    assert found(story) == line(p=3, q=0)


def test_a_job_without_checkpoints_is_at_its_initial_line():
    assert found("p: s1 | q: r1") == line(p=0, q=0)


def test_a_checkpoint_of_a_stranger_is_refused():
    with pytest.raises(ProtocolViolation, match="no task of this job"):
        largest_line(Topology((), ()), [CheckpointMeta(TaskId("p"), 1)])


# All ways lead to the same line.


@given(executions())
def test_algorithm_1_the_fixpoint_and_brute_force_find_the_same_line(execution):
    topology, metas = execution
    expected = brute_force_line(topology, metas)
    assert rollback_propagation(checkpoint_graph(topology, metas)) == expected
    assert largest_line(topology, reversed(metas)) == expected


@given(executions(tasks_max=3))
def test_lines_are_consistent_exactly_when_they_have_no_orphans(execution):
    topology, metas = execution
    for chosen in all_lines(topology, metas):
        assert (not orphans(topology, chosen)) == without_orphans(topology, chosen)


@given(executions())
def test_the_line_only_moves_forward_when_checkpoints_are_added(execution):
    topology, metas = execution
    before = dict.fromkeys(topology.tasks, 0)
    for count in range(len(metas) + 1):
        now = largest_line(topology, metas[:count]).checkpoints
        assert all(before[task] <= now[task] for task in topology.tasks)
        before = now


@given(executions())
def test_edges_are_exactly_those_of_the_definition(execution):
    topology, metas = execution
    graph = checkpoint_graph(topology, metas)
    chosen = {(m.task, m.checkpoint): m for m in metas}
    for (i, x), ends in graph.successors.items():
        sender = chosen.get((i, x)) or CheckpointMeta(i, x)
        newer = [m.checkpoint for m in metas if m.task == i and m.checkpoint > x]
        expected = {(i, newer[0])} if newer else set()
        for channel in topology.outputs[i]:
            for m in metas:
                after_x = sender.sent.get(channel.id, 0)
                if m.task == channel.target != i and m.received.get(channel.id, 0) > after_x:
                    expected.add((m.task, m.checkpoint))
        assert set(ends) == expected
        assert len(ends) == len(expected)
