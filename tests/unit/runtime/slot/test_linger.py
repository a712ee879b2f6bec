"""A slot that hardly rests lets records gather for longer, and returns to its settings when it rests."""

from snapline.runtime.slot.linger import MOST_MS, Linger


def test_a_slot_that_works_much_lingers_longer_and_longer_up_to_a_limit():
    linger = Linger(1)
    assert [linger.follow(0.9) for _ in range(5)] == [2, 4, 8, MOST_MS, MOST_MS]


def test_a_slot_that_rests_again_goes_back_to_its_settings():
    linger = Linger(1)
    for _ in range(5):
        linger.follow(1.0)
    assert [linger.follow(0.1) for _ in range(5)] == [4, 2, 1, 1, 1]


def test_between_busy_and_idle_nothing_changes():
    linger = Linger(1)
    linger.follow(1.0)
    assert [linger.follow(working) for working in (0.3, 0.45, 0.6)] == [2, 2, 2]


def test_nobody_lingers_for_less_than_was_asked_for_nor_for_more_if_that_was_much():
    assert [Linger(0).follow(1.0), Linger(0).follow(0.0)] == [0, 0]
    assert [Linger(50).follow(1.0), Linger(50).follow(0.0)] == [50, 50]


def test_how_much_a_slot_works_is_told_by_how_long_it_has_rested():
    linger = Linger(1)
    assert linger.look(10.0, 3.0) == 1  # nobody knows yet
    assert linger.look(12.0, 3.2) == 2  # a tenth of the time
    assert linger.look(14.0, 3.2) == 4
    assert linger.look(14.0, 3.2) == 4  # no time has passed
    assert linger.look(16.0, 5.2) == 2
