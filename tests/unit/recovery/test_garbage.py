"""What may be deleted, and that nothing is deleted that a recovery could still read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recovery_executions import at, executions, line, parse

from snapline.core.messages import CheckpointMeta, initial_meta
from snapline.core.topology import Topology
from snapline.errors import ProtocolViolation
from snapline.ids import TaskId
from snapline.recovery.garbage import garbage
from snapline.recovery.recovery_line import largest_line
from snapline.recovery.replay import replay_ranges

STORY = "p: s1 c1 s2 c2 s3 c3 s4 c4 | q: r1 c1 r2 c2 r3 c3 r4 c4"
P = TaskId("p")
ALONE = Topology((P,), ())


def deltas(*parents):
    """Checkpoints 1, 2, ... of one task with these parents."""
    return [CheckpointMeta(P, number, parent=parent) for number, parent in enumerate(parents, 1)]


def deleted(metas, *kept):
    return [number for _, number in garbage(ALONE, [line(p=n) for n in kept], metas).checkpoints]


def test_what_is_older_than_the_older_kept_line_goes():
    topology, metas = parse(STORY)
    found = garbage(topology, [line(p=2, q=2), line(p=4, q=3)], metas)
    assert found.checkpoints == (("p", 1), ("q", 1))
    assert found.logs == {"p>q": 2}


def test_nothing_goes_while_the_older_line_is_the_initial_one():
    topology, metas = parse(STORY)
    found = garbage(topology, [line(p=0, q=0), line(p=4, q=3)], metas)
    assert found.checkpoints == ()
    assert found.logs == {}


def test_nothing_goes_while_no_line_is_kept():
    topology, metas = parse(STORY)
    found = garbage(topology, [], metas)
    assert (found.checkpoints, found.logs) == ((), {})


def test_the_order_of_the_kept_lines_does_not_matter():
    topology, metas = parse(STORY)
    older, newer = line(p=2, q=2), line(p=4, q=3)
    assert garbage(topology, [newer, older], metas) == garbage(topology, [older, newer], metas)


def test_bases_of_kept_deltas_stay_however_far_back_they_are():
    assert deleted(deltas(None, 1, None, 2, 4), 5, 5) == [3]


def test_bases_of_checkpoints_beyond_the_line_stay():
    assert deleted(deltas(None, None, None, 1), 3, 3) == [2]


def test_a_full_snapshot_frees_the_chain_before_it():
    assert deleted(deltas(None, 1, 2, None, 4), 4, 5) == [1, 2, 3]


def test_a_delta_on_the_initial_state_needs_nothing():
    assert deleted(deltas(0, 1, None), 3) == [1, 2]


def test_the_initial_state_was_never_stored_so_it_is_never_deleted():
    assert deleted([initial_meta(P), *deltas(None, None)], 2) == [1]


def test_tasks_on_no_kept_line_keep_everything():
    topology, metas = parse(STORY)
    found = garbage(topology, [line(p=3)], metas)
    assert found.checkpoints == (("p", 1), ("p", 2))
    assert found.logs == {}


def test_a_kept_line_must_be_known():
    topology, metas = parse(STORY)
    with pytest.raises(ProtocolViolation, match="of q is on a kept line but not known"):
        garbage(topology, [line(p=3, q=7)], metas)


@given(executions(), st.data())
def test_every_kept_or_later_line_can_still_be_restored_and_replayed(execution, data):
    topology, metas = execution
    cut = data.draw(st.integers(0, len(metas)))
    older, newer = largest_line(topology, metas[:cut]), largest_line(topology, metas)
    found = garbage(topology, [older, newer], metas)
    for kept in (older, newer):
        assert not [node for node in kept.checkpoints.items() if node in found.checkpoints]
        for channel, (after, _) in replay_ranges(topology, at(metas, kept)).items():
            assert found.logs.get(channel, 0) <= after
    oldest = older.checkpoints
    rest = [m for m in metas if (m.task, m.checkpoint) not in found.checkpoints]
    assert all(m.checkpoint >= oldest[m.task] for m in rest)
