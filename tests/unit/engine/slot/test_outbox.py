"""What waits on an output: in order, and read no earlier than it is sent."""

import pytest

from engine_fakes import message
from snapline.core.messages import Marker
from snapline.engine.slot.outbox import Outbox


def reading(first, last, read):
    """Messages that note when they are read."""
    for seq in range(first, last + 1):
        read.append(seq)
        yield message(seq)


@pytest.fixture
def read():
    return []


@pytest.fixture
def outbox(read):
    """Two stretches to send again, and behind them what was sent meanwhile."""
    outbox = Outbox()
    outbox.replay(reading(1, 2, read), 2)
    outbox.replay(reading(3, 4, read), 2)
    outbox.append(message(5))
    outbox.append(Marker(7))
    return outbox


def test_what_is_sent_again_comes_first_and_all_in_order(outbox):
    assert [outbox.popleft() for _ in range(len(outbox))] == [
        *map(message, range(1, 6)),
        Marker(7),
    ]
    assert not outbox


def test_a_message_is_read_when_it_is_taken(outbox, read):
    assert (len(outbox), outbox.marker_is_next, read) == (6, False, [])
    outbox.popleft()
    assert (len(outbox), read) == (5, [1])


def test_a_marker_is_seen_only_when_it_is_next(outbox):
    seen = []
    while outbox:
        seen.append(outbox.marker_is_next)
        outbox.popleft()
    assert seen == [False] * 5 + [True]


def test_a_look_at_all_messages_takes_none(outbox):
    outbox.popleft()
    for _ in range(2):
        assert outbox.messages() == [message(seq) for seq in range(2, 6)]
    assert [outbox.popleft().seq for _ in range(4)] == [2, 3, 4, 5]
    assert outbox.popleft() == Marker(7)


def test_only_what_was_sent_before_is_sent_again(outbox):
    again = []
    while outbox:
        again.append(outbox.replays)
        outbox.popleft()
    assert again == [True] * 4 + [False] * 2
