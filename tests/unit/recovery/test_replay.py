"""Which messages come again after a rollback and from where, and what a rollback makes void."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recovery_executions import at, executions, line, parse

from snapline.core.messages import CheckpointMeta
from snapline.core.topology import Channel, Topology
from snapline.errors import ProtocolViolation
from snapline.ids import ChannelId, TaskId
from snapline.recovery.recovery_line import largest_line
from snapline.recovery.replay import (
    Origin,
    ReplayPart,
    replay_plan,
    replay_ranges,
    skipped,
)

P, Q, PQ = TaskId("p"), TaskId("q"), ChannelId("p>q")
PAIR = Topology((P, Q), (Channel(PQ, P, Q),))


def plan(sent, received, recorded=None, overtaken=None):
    """The plan of one channel, as `receiver 3-5`: messages 4 and 5 from the receiver."""
    line_metas = {
        P: CheckpointMeta(
            P, 1, sent={PQ: sent}, channel_state={PQ: overtaken} if overtaken else {}
        ),
        Q: CheckpointMeta(
            Q, 1, received={PQ: received}, channel_state={PQ: recorded} if recorded else {}
        ),
    }
    parts = replay_plan(PAIR, line_metas)
    assert all(part.channel == PQ for part in parts)
    return [f"{part.origin.value} {part.after}-{part.through}" for part in parts]


def test_what_nobody_stored_comes_from_the_log():
    assert plan(sent=7, received=3) == ["log 3-7"]


def test_nothing_is_replayed_when_all_was_received():
    assert plan(sent=7, received=7) == []


def test_an_orphan_is_not_replayed():
    assert plan(sent=3, received=7) == []


def test_recorded_input_comes_first_then_overtaken_output():
    assert plan(7, 3, recorded=(3, 5), overtaken=(5, 7)) == ["receiver 3-5", "sender 5-7"]


def test_gaps_are_filled_from_the_log():
    assert plan(9, 1, recorded=(2, 3), overtaken=(5, 7)) == [
        "log 1-2",
        "receiver 2-3",
        "log 3-5",
        "sender 5-7",
        "log 7-9",
    ]


def test_what_both_ends_stored_comes_from_the_receiver():
    assert plan(9, 3, recorded=(3, 6), overtaken=(4, 9)) == ["receiver 3-6", "sender 6-9"]
    assert plan(9, 3, recorded=(4, 6), overtaken=(3, 9)) == [
        "sender 3-4",
        "receiver 4-6",
        "sender 6-9",
    ]


def test_an_empty_recording_is_none():
    assert plan(9, 9, recorded=(4, 4)) == []


@pytest.mark.parametrize("stored", [{"recorded": (2, 5)}, {"overtaken": (5, 8)}])
def test_channel_state_beyond_what_is_under_way_is_refused(stored):
    end = "receiver" if "recorded" in stored else "sender"
    with pytest.raises(ProtocolViolation, match=f"the {end} of p>q .* only .3, 7. are under way"):
        plan(sent=7, received=3, **stored)


def test_channel_state_where_nothing_is_under_way_is_refused():
    with pytest.raises(ProtocolViolation, match="under way"):
        plan(sent=7, received=7, recorded=(7, 8))


def test_the_snapshot_of_a_task_that_sends_to_itself_is_read_once():
    loop = Channel(ChannelId("p>p"), P, P, feedback=True)
    meta = CheckpointMeta(P, 1, {loop.id: 4}, {loop.id: 1}, channel_state={loop.id: (1, 4)})
    assert replay_plan(Topology((P,), (loop,)), {P: meta}) == (
        ReplayPart(loop.id, 1, 4, Origin.RECEIVER),
    )


def inner(low, high):
    return st.tuples(st.integers(low, high), st.integers(low, high)).map(sorted).map(tuple)


@given(st.integers(0, 5), st.integers(0, 12), st.data())
def test_a_plan_covers_exactly_what_is_under_way_in_order(received, under_way, data):
    sent = received + under_way
    recorded, overtaken = data.draw(inner(received, sent)), data.draw(inner(received, sent))
    covered = []
    for part in plan(sent, received, recorded, overtaken):
        origin, _, seqs = part.partition(" ")
        after, through = map(int, seqs.split("-"))
        for seq in range(after + 1, through + 1):
            holders = [("receiver", recorded), ("sender", overtaken), ("log", (0, sent))]
            first = next(name for name, (low, high) in holders if low < seq <= high)
            assert origin == first
            covered.append(seq)
    assert covered == list(range(received + 1, sent + 1))


@given(executions())
def test_ranges_are_the_messages_under_way_across_the_line(execution):
    topology, metas = execution
    chosen = at(metas, largest_line(topology, metas))
    expected = {}
    for channel in topology.channels:
        sent = chosen[channel.source].sent.get(channel.id, 0)
        received = chosen[channel.target].received.get(channel.id, 0)
        assert received <= sent
        if received != sent:
            expected[channel.id] = (received, sent)
    assert replay_ranges(topology, chosen) == expected
    assert [(p.channel, (p.after, p.through)) for p in replay_plan(topology, chosen)] == [
        *expected.items()
    ]


def test_a_task_that_the_line_leaves_out_is_at_its_beginning():
    assert replay_ranges(PAIR, {P: CheckpointMeta(P, 1, sent={PQ: 2})}) == {PQ: (0, 2)}


def test_skipped_checkpoints_are_those_newer_than_the_line():
    _, metas = parse("p: c1 c2 c3 | q: c1 c2")
    assert [m.checkpoint for m in skipped(metas, line(p=1, q=2))] == [2, 3]
    assert skipped(metas, line(q=2)) == ()
