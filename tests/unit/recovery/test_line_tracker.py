"""The tracker against the fixpoint: after every step of a job, however the checkpoints come and go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recovery_executions import Execution, executions, line, parse, steps, topologies

from snapline.core.messages import CheckpointMeta, RecoveryLine, initial_meta
from snapline.core.topology import Channel, Topology
from snapline.errors import ObjectDamaged, ProtocolViolation
from snapline.ids import INITIAL, ChannelId, TaskId, task_id
from snapline.recovery.line_tracker import LineTracker
from snapline.recovery.recovery_line import largest_line, largest_positions


def on_line(tracker):
    """The metadata of the tracker's line."""
    return {task: tracker.meta(task, at) for task, at in tracker.line.checkpoints.items()}


def tracked(story):
    topology, metas = parse(story)
    tracker = LineTracker(topology)
    for meta in metas:
        tracker.add(meta)
    return tracker


def names(metas):
    return [f"{meta.task}{meta.checkpoint}" for meta in metas]


@given(executions())
def test_the_tracker_has_the_largest_line_after_every_checkpoint(execution):
    topology, metas = execution
    tracker = LineTracker(topology)
    for count, meta in enumerate(metas, 1):
        before = tracker.line
        moved = tracker.add(meta)
        assert tracker.line == largest_line(topology, metas[:count])
        assert moved == (tracker.line != before)


@given(executions(), st.randoms(use_true_random=False))
def test_checkpoints_may_become_durable_in_any_order(execution, rng):
    topology, metas = execution
    rng.shuffle(metas)
    tracker = LineTracker(topology)
    for count, meta in enumerate(metas, 1):
        before = tracker.line
        moved = tracker.add(meta)
        assert tracker.line == largest_line(topology, metas[:count])
        assert moved == (tracker.line != before)


class Model:
    """What a tracker should know, found anew from the counters each time it is asked."""

    def __init__(self, topology):
        self.topology = topology
        self.known = {task: [initial_meta(task)] for task in topology.tasks}

    def line(self, known=None):
        known = known or self.known
        positions = largest_positions(self.topology, known)
        if positions is None:
            return None
        return RecoveryLine({task: known[task][at].checkpoint for task, at in positions.items()})

    def keep(self, wanted):
        self.known = {task: [m for m in metas if wanted(m)] for task, metas in self.known.items()}


@given(topologies(), st.data())
def test_a_whole_life_of_a_job_is_followed_exactly(topology, data):
    execution, tracker, model = Execution(topology), LineTracker(topology), Model(topology)
    kept = tracker.line
    for kind, which in data.draw(steps("ssssrrrrrrccccccbdf", 100)):
        task = topology.tasks[which % len(topology.tasks)]
        if kind in "sr":
            execution.communicate(kind, which)
        elif kind == "c":
            parent = model.known[task][-1].checkpoint if which % 3 == 0 else None
            meta = execution.checkpoint(task, parent or None)
            tracker.add(meta)
            model.known[task].append(meta)
        elif kind == "b":
            at = tracker.line.checkpoints
            beyond = [m for ms in model.known.values() for m in ms if m.checkpoint > at[m.task]]
            assert list(tracker.drop_beyond(tracker.line)) == beyond
            model.keep(lambda m, at=at: m.checkpoint <= at[m.task])
            execution.roll_back(on_line(tracker).values())
        elif kind == "f":
            tracker.forget_before(kept)
            model.keep(lambda m, at=kept.checkpoints: m.checkpoint >= at[m.task])
            kept = tracker.line
        elif kind == "d":
            damage(tracker, model, model.known[task][which % len(model.known[task])])
            execution.roll_back(on_line(tracker).values())
            tracker.drop_beyond(tracker.line)
            at = tracker.line.checkpoints
            model.keep(lambda m, at=at: m.checkpoint <= at[m.task])
            kept = RecoveryLine({t: min(n, at[t]) for t, n in kept.checkpoints.items()})
        assert tracker.line == model.line()
        assert list(tracker) == [m for metas in model.known.values() for m in metas]


def damage(tracker, model, meta):
    """Remove a checkpoint and its deltas from both, or see the tracker refuse and stay the same."""
    bad = [meta]
    for later in model.known[meta.task]:
        if later.parent in [m.checkpoint for m in bad]:
            bad.append(later)
    intact = {task: [m for m in metas if m not in bad] for task, metas in model.known.items()}
    if model.line(intact) is None:
        with pytest.raises(ObjectDamaged, match="no consistent line remains"):
            tracker.remove(meta.task, meta.checkpoint)
    else:
        assert list(tracker.remove(meta.task, meta.checkpoint)) == bad
        model.known = intact


def test_checkpoints_that_need_each_other_join_together():
    topology, metas = parse("p: s1 r2 c1 | q: s2 r1 c1")
    tracker = LineTracker(topology)
    assert not tracker.add(metas[0])
    assert tracker.line == line(p=0, q=0)
    assert tracker.add(metas[1])
    assert tracker.line == line(p=1, q=1)


def test_two_circles_that_share_a_task_join_together():
    topology, metas = parse("p: s1 r2 c1 | q: s2 r1 s3 r4 c1 | r: s4 r3 c1")
    tracker = LineTracker(topology)
    assert [tracker.add(metas[i]) for i in (0, 2, 1)] == [False, False, True]
    assert tracker.line == line(p=1, q=1, r=1)


def added_in_order(story, *order):
    """The line after adding the checkpoints of a story, each named like `p1`, in this order."""
    topology, metas = parse(story)
    named = {f"{meta.task}{meta.checkpoint}": meta for meta in metas}
    tracker = LineTracker(topology)
    for name in order:
        tracker.add(named[name])
    return tracker.line


def test_who_waits_for_one_of_a_circle_joins_when_the_circle_does():
    story = "p: s1 r2 c1 | q: s2 r1 s3 c1 | r: r3 c1"
    assert added_in_order(story, "p1", "r1", "q1") == line(p=1, q=1, r=1)


def test_a_circle_joins_only_when_all_that_any_of_it_requires_is_there():
    story = "p: s1 r2 c1 | q: s2 r1 r3 c1 | r: c1 s3 c2"
    assert added_in_order(story, "p1", "r1", "q1") == line(p=0, q=0, r=1)
    assert added_in_order(story, "p1", "r1", "q1", "r2") == line(p=1, q=1, r=2)


def test_one_checkpoint_may_free_several_of_a_task_at_once():
    story = "p: s1 s2 c1 | q: r1 c1 r2 c2"
    assert added_in_order(story, "q1", "q2", "p1") == line(p=1, q=2)


def test_an_older_checkpoint_that_joins_late_does_not_take_its_task_back():
    story = "p: s1 s2 c1 | q: r1 c1 r2 s3 c2 | r: r3 c1"
    assert added_in_order(story, "q1", "q2", "r1", "p1") == line(p=1, q=2, r=1)


class Counted(dict):
    """Counters that count how often they are looked at."""

    looks = 0

    def get(self, key, default=None):
        Counted.looks += 1
        return super().get(key, default)


@pytest.mark.parametrize("rear", ["a/0", "b/9"])
def test_a_new_checkpoint_costs_what_its_inputs_cost_and_not_the_whole_job(rear):
    width, rounds = 20, 6
    operators = "abc"
    tasks = tuple(task_id(op, i) for op in operators for i in range(width))
    ends = [(p, q) for p in tasks for q in tasks if p[0] + q[0] in ("ab", "bc", "ca")]
    channels = tuple(Channel(ChannelId(f"{p}>{q}"), p, q) for p, q in ends)
    topology = Topology(tasks, channels)
    tracker = LineTracker(topology)
    in_order = sorted(tasks, key=lambda task: task == rear)  # everybody waits for the last one
    Counted.looks = 0
    for number in range(1, rounds + 1):
        for task in in_order:
            sent = Counted({c.id: 10 * number for c in topology.outputs[task]})
            received = Counted({c.id: 10 * number - 1 for c in topology.inputs[task]})
            tracker.add(CheckpointMeta(task, number, sent, received))
    assert tracker.line == tracker.newest()
    assert Counted.looks < 5 * rounds * len(channels)


def test_the_lag_counts_checkpoints_beyond_the_line():
    tracker = tracked("p: c1 s1 | q: r1 c1 c2 c3")
    assert tracker.line == line(p=1, q=0)
    assert tracker.lag == 3
    assert tracker.newest() == line(p=1, q=3)


def test_the_metadata_of_the_line_and_of_any_checkpoint_can_be_asked_for():
    topology, metas = parse("p: s1 c1 c2 | q: r1 c1")
    tracker = LineTracker(topology)
    for meta in metas:
        tracker.add(meta)
    assert on_line(tracker) == {"p": metas[1], "q": metas[2]}
    assert tracker.meta(TaskId("p"), 1) is metas[0]
    assert tracker.meta(TaskId("q"), INITIAL) == initial_meta(TaskId("q"))
    with pytest.raises(ProtocolViolation, match="q has no checkpoint"):
        tracker.meta(TaskId("q"), 7)


def test_a_report_that_comes_twice_changes_nothing():
    topology, metas = parse("p: c1 c2 | q: c1")
    tracker = LineTracker(topology)
    assert [tracker.add(meta) for meta in (*metas, *metas)] == [True] * 3 + [False] * 3
    assert len(list(tracker)) == 5
    with pytest.raises(ProtocolViolation, match="twice"):
        tracker.add(CheckpointMeta(TaskId("p"), 2, bytes=7))


def test_a_rollback_of_some_tasks_leaves_the_others_alone():
    tracker = tracked("p: c1 c2 | q: c1 c2")
    assert names(tracker.drop_beyond(line(p=1))) == ["p2"]
    assert tracker.line == line(p=1, q=2)


def test_a_damaged_checkpoint_takes_the_deltas_on_it_along():
    topology, _ = parse("p: c1 | q: c1")
    tracker = LineTracker(topology)
    p = TaskId("p")
    for number, parent in ((1, None), (2, 1), (3, 2), (4, None), (5, 4)):
        tracker.add(CheckpointMeta(p, number, parent=parent))
    assert names(tracker.remove(p, 4)) == ["p4", "p5"]
    assert names(tracker.remove(p, 2)) == ["p2", "p3"]
    assert names(tracker.remove(p, 2)) == []
    assert tracker.line == line(p=1, q=0)


def test_damage_takes_the_line_back_for_those_who_know_too_much():
    tracker = tracked("p: c1 s1 c2 | q: c1 r1 c2")
    assert tracker.line == line(p=2, q=2)
    tracker.remove(TaskId("p"), 2)
    assert tracker.line == line(p=1, q=1)


def test_damage_behind_which_everything_was_forgotten_changes_nothing_and_is_loud():
    tracker = tracked("p: s1 c1 | q: r1 c1")
    tracker.forget_before(line(p=1, q=1))
    with pytest.raises(ObjectDamaged, match=r"checkpoint 0\.1 of p no consistent line"):
        tracker.remove(TaskId("p"), 1)
    assert tracker.line == line(p=1, q=1)


def test_what_is_beyond_the_line_cannot_be_forgotten():
    tracker = tracked("p: c1 s1 | q: r1 c1")
    with pytest.raises(ProtocolViolation, match="its line is at 0"):
        tracker.forget_before(line(p=1, q=1))
    assert names(tracker) == ["p0", "p1", "q0", "q1"]


def test_there_is_no_way_back_to_a_forgotten_line():
    tracker = tracked("p: c1 c2 | q: c1 c2")
    tracker.forget_before(line(p=2, q=2))
    with pytest.raises(ProtocolViolation, match="already forgotten"):
        tracker.drop_beyond(line(p=1, q=1))


def test_a_resumed_job_goes_on_from_its_line_and_never_behind_it():
    topology, metas = parse("p: s1 c1 s2 c2 | q: r1 c1 r2 c2")
    tracker = LineTracker(topology)
    tracker.add(metas[0])
    tracker.restore([metas[0], metas[2]])
    assert tracker.line == line(p=1, q=1)
    assert names(tracker) == ["p1", "q1"]
    assert [tracker.add(metas[3]), tracker.add(metas[1])] == [False, True]
    assert tracker.line == line(p=2, q=2)


def test_a_job_that_resumes_before_its_first_line_is_at_the_beginning():
    tracker = tracked("p: c1 | q: c1")
    tracker.restore([])
    assert tracker.line == line(p=0, q=0)


def test_a_checkpoint_of_an_unknown_task_is_refused():
    with pytest.raises(ProtocolViolation, match="no task of this job"):
        tracked("p: c1").add(CheckpointMeta(TaskId("z"), 1))
