from scenes import A, B, L, M, TaskScene, message

from snapline.core.effects import (
    Abandon,
    Block,
    Deliver,
    Forward,
    Record,
    Seal,
    Snapshot,
    Unblock,
)
from snapline.core.events import AbortRound, TriggerRound
from snapline.core.guarantee import Guarantee
from snapline.core.messages import Marker
from snapline.protocols.aligned_cyclic import ALIGNED_CYCLIC


def test_regular_inputs_align_and_back_edges_record():
    """ABS algorithm 2, lines 8 to 17: the local copy needs the regular inputs only."""
    loop = TaskScene(ALIGNED_CYCLIC, "A B L*")
    assert loop.marker("A", 1) == (Block(A),)
    assert loop.marker("B", 1) == (
        Block(B),
        Snapshot(1, open=True),
        Record(L),
        Forward(Marker(1)),
        Seal(1),
        Unblock(A),
        Unblock(B),
    )


def test_recorded_messages_are_delivered_and_the_returning_marker_is_the_engines():
    """ABS algorithm 2, lines 19 to 27: the engine ends the recording and stores."""
    loop = TaskScene(ALIGNED_CYCLIC, "A L*")
    loop.marker("A", 1)
    assert loop.take(message("L")) == (Deliver(message("L")),)
    assert loop.marker("L", 1) == ()
    assert loop.marker("A", 2) == (
        Block(A),
        Snapshot(2, open=True),
        Record(L),
        Forward(Marker(2)),
        Seal(2),
        Unblock(A),
    )


def test_a_task_off_the_cycle_is_as_aligned():
    source = TaskScene(ALIGNED_CYCLIC)
    assert source.command(TriggerRound(1)) == (Snapshot(1), Forward(Marker(1)))
    task = TaskScene(ALIGNED_CYCLIC, "A")
    assert task.marker("A", 1) == (Block(A), Snapshot(1), Forward(Marker(1)), Unblock(A))


def test_an_early_back_edge_is_blocked_and_records_nothing():
    """The correction: in the published form `marked = regular` would never hold again."""
    loop = TaskScene(ALIGNED_CYCLIC, "A L* M*")
    assert loop.marker("L", 1) == (Block(L),)
    assert loop.marker("A", 1) == (
        Block(A),
        Snapshot(1, open=True),
        Record(M),
        Forward(Marker(1)),
        Seal(1),
        Unblock(L),
        Unblock(A),
    )


def test_when_all_back_edges_are_early_there_is_no_channel_state():
    loop = TaskScene(ALIGNED_CYCLIC, "A L* M*")
    loop.marker("M", 1)
    loop.marker("L", 1)
    assert loop.marker("A", 1) == (
        Block(A),
        Snapshot(1),
        Forward(Marker(1)),
        Unblock(M),
        Unblock(L),
        Unblock(A),
    )


def test_back_edges_alone_never_complete_a_round():
    loop = TaskScene(ALIGNED_CYCLIC, "A B L*")
    assert loop.marker("L", 1) == (Block(L),)
    assert loop.marker("A", 1) == (Block(A),)


def test_an_abort_unblocks_an_early_back_edge_or_abandons_the_open_snapshot():
    loop = TaskScene(ALIGNED_CYCLIC, "A L*")
    loop.marker("L", 1)
    assert loop.command(AbortRound(1)) == (Unblock(L),)
    loop.marker("A", 2)
    assert loop.command(AbortRound(2)) == (Abandon(2),)
    assert loop.marker("L", 2) == ()


def test_an_early_back_edge_of_a_later_round_subsumes_the_alignment():
    loop = TaskScene(ALIGNED_CYCLIC, "A B L*")
    loop.marker("A", 1)
    assert loop.marker("L", 2) == (Unblock(A), Block(L))


def test_at_most_once_drops_the_channel_state_but_aligns():
    loop = TaskScene(ALIGNED_CYCLIC, "A L*", guarantee=Guarantee.AT_MOST_ONCE)
    assert loop.marker("A", 1) == (Block(A), Snapshot(1), Forward(Marker(1)), Unblock(A))


def test_at_least_once_records_but_blocks_nothing():
    loop = TaskScene(ALIGNED_CYCLIC, "A L* M*", guarantee=Guarantee.AT_LEAST_ONCE)
    assert loop.marker("L", 1) == ()
    assert loop.marker("A", 1) == (
        Snapshot(1, open=True),
        Record(M),
        Forward(Marker(1)),
        Seal(1),
    )
