import pytest
from scenes import A, B, L, TaskScene

from snapline.core.effects import (
    Abandon,
    Block,
    CancelTimer,
    Forward,
    Record,
    Seal,
    SetTimer,
    Snapshot,
    Unblock,
)
from snapline.core.events import AbortRound, LocalCheckpoint, TriggerRound
from snapline.core.guarantee import Guarantee
from snapline.core.messages import Marker
from snapline.errors import ProtocolViolation
from snapline.protocols.unaligned import UNALIGNED, AlignmentTimeout

OVERTAKE = Forward(Marker(1, overtaking=True), overtake=True)


def test_the_first_sighting_takes_the_snapshot_and_overtakes():
    join = TaskScene(UNALIGNED, "A B")
    assert join.sight("A", 1, overtaking=True) == (
        Snapshot(1, open=True),
        Record(A),
        Record(B),
        OVERTAKE,
        Seal(1),
    )
    assert join.sight("B", 1, overtaking=True) == ()
    assert join.marker("A", 1, overtaking=True) == ()
    assert join.marker("B", 1, overtaking=True) == ()


def test_a_source_overtakes_its_own_queued_output():
    source = TaskScene(UNALIGNED)
    assert source.command(TriggerRound(1)) == (Snapshot(1, open=True), OVERTAKE, Seal(1))


def test_with_a_time_out_a_source_sends_its_marker_in_band():
    source = TaskScene(UNALIGNED, align_timeout_ms=50)
    assert source.command(TriggerRound(1)) == (Snapshot(1), Forward(Marker(1)))


def test_a_round_that_aligns_in_time_is_as_aligned():
    join = TaskScene(UNALIGNED, "A B", align_timeout_ms=50)
    assert join.sight("A", 1) == (SetTimer(AlignmentTimeout(1), 50),)
    assert join.marker("A", 1) == (Block(A),)
    assert join.sight("B", 1) == ()
    assert join.marker("B", 1) == (
        Block(B),
        Snapshot(1),
        Forward(Marker(1)),
        CancelTimer(AlignmentTimeout(1)),
        Unblock(A),
        Unblock(B),
    )


def test_a_time_out_records_what_has_not_arrived_though_it_was_sighted():
    join = TaskScene(UNALIGNED, "A B L*", align_timeout_ms=50)
    join.sight("A", 1)
    join.marker("A", 1)
    join.sight("B", 1)
    assert join.timer(AlignmentTimeout(1)) == (
        Snapshot(1, open=True),
        Record(B),
        Record(L),
        OVERTAKE,
        Seal(1),
        Unblock(A),
    )
    assert join.marker("B", 1) == ()


def test_a_marker_that_overtook_ends_the_alignment():
    join = TaskScene(UNALIGNED, "A B", align_timeout_ms=50)
    join.sight("A", 1)
    join.marker("A", 1)
    assert join.sight("B", 1, overtaking=True) == (
        Snapshot(1, open=True),
        Record(B),
        OVERTAKE,
        Seal(1),
        CancelTimer(AlignmentTimeout(1)),
        Unblock(A),
    )


def test_back_edges_are_recorded_and_never_waited_for():
    loop = TaskScene(UNALIGNED, "A L*", align_timeout_ms=50)
    loop.sight("A", 1)
    assert loop.marker("A", 1) == (
        Block(A),
        Snapshot(1, open=True),
        Record(L),
        Forward(Marker(1)),
        Seal(1),
        CancelTimer(AlignmentTimeout(1)),
        Unblock(A),
    )
    assert loop.sight("L", 1) == ()
    assert loop.marker("L", 1) == ()


def test_a_marker_sighted_on_a_back_edge_begins_the_round():
    loop = TaskScene(UNALIGNED, "A L*")
    assert loop.sight("L", 1, overtaking=True)[:3] == (
        Snapshot(1, open=True),
        Record(A),
        Record(L),
    )


def test_an_abort_stops_the_alignment():
    join = TaskScene(UNALIGNED, "A B", align_timeout_ms=50)
    join.sight("A", 1)
    join.marker("A", 1)
    assert join.command(AbortRound(1)) == (CancelTimer(AlignmentTimeout(1)), Unblock(A))
    assert join.sight("B", 1) == ()
    assert join.marker("B", 1) == ()


def test_an_abort_abandons_an_open_snapshot():
    join = TaskScene(UNALIGNED, "A B")
    join.sight("A", 1, overtaking=True)
    assert join.command(AbortRound(1)) == (Abandon(1),)


def test_a_later_round_subsumes_the_alignment():
    join = TaskScene(UNALIGNED, "A B", align_timeout_ms=50)
    join.sight("A", 1)
    join.marker("A", 1)
    assert join.sight("B", 2) == (
        CancelTimer(AlignmentTimeout(1)),
        Unblock(A),
        SetTimer(AlignmentTimeout(2), 50),
    )


def test_at_most_once_nothing_is_recorded_and_nothing_overtaken():
    quick = TaskScene(UNALIGNED, "A B", guarantee=Guarantee.AT_MOST_ONCE)
    assert quick.sight("A", 1) == (Snapshot(1), Forward(Marker(1)))
    source = TaskScene(UNALIGNED, guarantee=Guarantee.AT_MOST_ONCE)
    assert source.command(TriggerRound(1)) == (Snapshot(1), Forward(Marker(1)))
    patient = TaskScene(UNALIGNED, "A B", guarantee=Guarantee.AT_MOST_ONCE, align_timeout_ms=50)
    patient.sight("A", 1)
    patient.marker("A", 1)
    assert patient.timer(AlignmentTimeout(1)) == (Snapshot(1), Forward(Marker(1)), Unblock(A))


def test_a_marker_that_was_never_sighted_is_a_violation():
    with pytest.raises(ProtocolViolation):
        TaskScene(UNALIGNED, "A B").marker("A", 1)
    join = TaskScene(UNALIGNED, "A B", align_timeout_ms=50)
    join.sight("A", 1)
    with pytest.raises(ProtocolViolation):
        join.marker("A", 2)


@pytest.mark.parametrize("timer", [AlignmentTimeout(1), LocalCheckpoint()])
def test_a_timer_that_was_not_set_is_a_violation(timer):
    with pytest.raises(ProtocolViolation):
        TaskScene(UNALIGNED, "A B", align_timeout_ms=50).timer(timer)
