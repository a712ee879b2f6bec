"""What a line means for its channels, at each guarantee level."""

import pytest

from engine_fakes import AB, TOPOLOGY, A, B, meta
from snapline.core.guarantee import Guarantee
from snapline.engine.coordinator.levels import keeper, settle
from snapline.recovery.replay import Origin, ReplayPart, replay_plan

EXACTLY, AT_LEAST, AT_MOST = (
    Guarantee.EXACTLY_ONCE,
    Guarantee.AT_LEAST_ONCE,
    Guarantee.AT_MOST_ONCE,
)


def restart(guarantee, *, sent, received, **state):
    line = {A: meta("a", 1, sent={AB: sent}), B: meta("b", 1, received={AB: received}, **state)}
    settled = settle(TOPOLOGY, line, guarantee)
    return settled[B].received[AB], replay_plan(TOPOLOGY, settled)


@pytest.mark.parametrize("guarantee", [EXACTLY, AT_LEAST])
def test_what_is_under_way_across_the_line_is_replayed(guarantee):
    assert restart(guarantee, sent=7, received=4) == (4, (ReplayPart(AB, 4, 7, Origin.LOG),))


def test_exactly_once_takes_channel_state_before_the_log():
    assert restart(EXACTLY, sent=7, received=4, channel_state={AB: (4, 6)}) == (
        4,
        (ReplayPart(AB, 4, 6, Origin.RECEIVER), ReplayPart(AB, 6, 7, Origin.LOG)),
    )


def test_at_least_once_a_receiver_that_is_ahead_is_set_back_so_that_nothing_is_discarded():
    assert restart(AT_LEAST, sent=4, received=7) == (4, ())


def test_at_most_once_nothing_is_replayed_and_the_receiver_skips_what_is_lost():
    assert restart(AT_MOST, sent=7, received=4) == (7, ())


@pytest.mark.parametrize("guarantee", [EXACTLY, AT_LEAST, AT_MOST])
def test_a_channel_without_anything_under_way_needs_nothing(guarantee):
    assert restart(guarantee, sent=4, received=4) == (4, ())


def test_what_a_rollback_settled_holds_in_the_next_one():
    """The receiver was ahead; the sender has reused its numbers and is ahead of it now."""
    first = {A: meta("a", 1, sent={AB: 4}), B: meta("b", 1, received={AB: 7})}
    settled = settle(TOPOLOGY, first, AT_LEAST)
    second = {**settled, A: meta("a", 2, sent={AB: 9})}
    assert replay_plan(TOPOLOGY, settle(TOPOLOGY, second, AT_LEAST)) == (
        ReplayPart(AB, 4, 9, Origin.LOG),
    )


@pytest.mark.parametrize(
    ("origin", "task"), [(Origin.LOG, A), (Origin.SENDER, A), (Origin.RECEIVER, B)]
)
def test_what_is_replayed_lies_with_the_task_that_kept_it(origin, task):
    assert keeper(TOPOLOGY, ReplayPart(AB, 1, 2, origin)) == task
