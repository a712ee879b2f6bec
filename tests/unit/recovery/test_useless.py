"""Useless checkpoints of a whole run: in one timeline, across rollbacks, and where nobody can say."""

from dataclasses import replace

import pytest
from hypothesis import given
from recovery_executions import line, parse, timelines

from snapline.core.messages import CheckpointMeta, RecoveryLine
from snapline.ids import TaskId
from snapline.recovery import useless
from snapline.recovery.useless import UselessFinder, topology_of
from snapline.recovery.zpaths import useless_checkpoints

Z_CYCLE = "p: r2 c1 s1 | q: s2 r1 c1"  # p 1 is on a Z-cycle
DOMINO = "o1: c1 s1 r3 c2 s4 r6 c3 | o2: c1 r1 s2 c2 r4 s5 c3 | o3: c1 r2 s3 r5 c2 s6"


def counted(topology, metas):
    """The same checkpoints with a counter for every channel of their task, as tasks make them."""
    return [
        replace(
            meta,
            sent={c.id: meta.sent.get(c.id, 0) for c in topology.outputs[meta.task]},
            received={c.id: meta.received.get(c.id, 0) for c in topology.inputs[meta.task]},
        )
        for meta in metas
    ]


def story(text):
    return counted(*parse(text))


def finder_of(metas):
    finder = UselessFinder()
    for meta in metas:
        finder.stored(meta)
    return finder


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (Z_CYCLE, {("p", 1)}),
        ("p: r2 c1 s1 | q: s2 c1 r1 c2", set()),
        (DOMINO, {("o1", 2), ("o2", 2), ("o3", 2)}),
    ],
)
def test_of_one_timeline_they_are_those_on_z_cycles(text, expected):
    assert finder_of(story(text)).found() == expected


@given(timelines(tasks_max=3))
def test_the_counters_of_checkpoints_are_enough_to_know_the_channels(timeline):
    execution, metas = timeline
    metas = counted(execution.topology, metas)
    if {meta.task for meta in metas} == set(execution.topology.tasks):
        found = {channel.id for channel in topology_of(metas).channels}
        assert found == {channel.id for channel in execution.topology.channels}
        expected = useless_checkpoints(execution.topology, metas)
        assert finder_of(metas).found() == set(expected)


def test_a_committed_line_changes_nothing_about_them():
    metas = story("p: c1 r2 c2 s1 c3 | q: c1 s2 r1 c2")
    finder = finder_of(metas)
    finder.committed(line(p=1, q=1))
    assert finder.found() == {("p", 2)}


def test_before_and_behind_a_rollback_they_are_found_apart():
    finder = finder_of(story(Z_CYCLE))
    finder.rolled_back(line(p=0, q=0))
    assert finder.skipped == {("p", 1), ("q", 1)}
    for meta in story("p: c5 | q: c5"):  # the same numbers of messages again, otherwise
        finder.stored(meta)
    assert finder.found() == {("p", 1)}


def test_without_cycles_nothing_is_remembered():
    finder = finder_of(story("p: c1 s1 c2 | q: r1 c1"))
    finder.committed(line(p=1, q=1))
    assert not finder._alive
    finder.stored(CheckpointMeta(TaskId("p"), 3))
    finder.rolled_back(line(p=1, q=1))
    finder.give_up()
    assert (finder._alive, finder._timelines, finder.found()) == ({}, [], frozenset())


def test_of_too_many_nobody_can_say_which_are_useless(monkeypatch):
    monkeypatch.setattr(useless, "COUNTERS_MAX", 3)
    finder = finder_of(story(Z_CYCLE))
    assert finder.found() is None
    assert not finder._alive


def test_behind_a_line_with_orphans_nobody_can_say():
    finder = finder_of(story("p: c1 s1 r2 c2 | q: r1 c1 s2 c2"))
    finder.rolled_back(line(p=1, q=1))  # q has received what p has not sent
    assert finder.found() is None


def test_a_task_that_goes_back_to_its_initial_state_has_sent_nothing():
    finder = finder_of(story("p: s1 r2 c1 | q: r1 c1 s2 c2"))
    finder.rolled_back(RecoveryLine({TaskId("p"): 0, TaskId("q"): 1}))
    assert finder.found() is None
