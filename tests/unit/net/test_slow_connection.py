"""Connections that are made worse on purpose: slow, or stalled; in order, and nothing is lost."""

import time

import pytest
from transport_pairs import Recorder, net, number_of, numbered

DELAY_S = 0.15


@pytest.fixture
def world():
    with net() as made:
        yield made


def numbers(recorder):
    return [number_of(body) for body in recorder.bodies]


def pass_time(world, seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        world.loop.poll(0.01)


def test_a_slow_end_holds_up_what_it_sends_and_what_it_receives(world):
    one, heard_by_one, two, heard_by_two = world.pair()
    one.slow(DELAY_S)
    begun = time.monotonic()
    for number in range(1_000):
        one.send(numbered(number))
        two.send(numbered(number + 7, 1 << 14 if number % 100 == 0 else 8))
    world.until(lambda: heard_by_one.bodies or heard_by_two.bodies)
    assert time.monotonic() - begun >= DELAY_S
    world.until(lambda: len(heard_by_one.bodies) == len(heard_by_two.bodies) == 1_000)
    assert numbers(heard_by_two) == list(range(1_000))
    assert numbers(heard_by_one) == list(range(7, 1_007))


def test_others_in_the_same_loop_are_as_quick_as_before(world):
    slow, _, _, heard_late = world.pair()
    quick, _, _, heard = world.pair()
    slow.slow(600)
    slow.send(numbered(1))
    quick.send(numbered(2))
    world.until(lambda: heard.bodies)
    assert not heard_late.bodies


def test_nothing_overtakes_what_is_slow_when_the_connection_is_quick_again(world):
    one, heard_by_one, two, heard_by_two = world.pair()
    one.slow(DELAY_S)
    begun = time.monotonic()
    one.send(numbered(1))
    two.send(numbered(1))
    pass_time(world, 0.03)
    one.slow(0)
    one.send(numbered(2))
    two.send(numbered(2))
    world.until(lambda: heard_by_one.bodies or heard_by_two.bodies)
    assert time.monotonic() - begun >= DELAY_S
    world.until(lambda: len(heard_by_one.bodies) == len(heard_by_two.bodies) == 2)
    assert numbers(heard_by_one) == numbers(heard_by_two) == [1, 2]
    took = []
    for number in range(3, 23):  # one of them at least finds the machine at leisure
        one.send(numbered(number))
        before = time.monotonic()
        world.until(lambda: len(heard_by_two.bodies) == number)  # noqa: B023
        took.append(time.monotonic() - before)
    assert min(took) < DELAY_S


def test_a_marker_does_not_pass_what_is_slow(world):
    one, _, _, heard = world.pair()
    one.slow(0.05)
    one.send(numbered(1), 1)
    assert one.overtake(lambda item: True, numbered(2), 2) == []
    world.until(lambda: len(heard.bodies) == 2)
    assert numbers(heard) == [1, 2]


def test_the_end_of_a_slow_connection_is_noticed_late_and_after_all_that_came(world):
    one, heard_by_one, two, _ = world.pair()
    one.slow(DELAY_S)
    begun = time.monotonic()
    two.send(numbered(1))
    pass_time(world, 0.02)
    two.close()
    world.until(lambda: heard_by_one.losses)
    assert time.monotonic() - begun >= DELAY_S
    assert numbers(heard_by_one) == [1]
    assert len(heard_by_one.losses) == 1


def test_what_a_closed_connection_still_held_goes_nowhere(world):
    one, heard_by_one, two, heard_by_two = world.pair()
    one.slow(1)  # long enough for what comes next, on a machine of any speed
    one.send(numbered(1))
    two.send(numbered(2))
    pass_time(world, 0.02)
    one.close()
    world.until(lambda: heard_by_two.losses)
    pass_time(world, 1.05)
    assert heard_by_one.bodies == heard_by_two.bodies == heard_by_one.losses == []


def test_one_that_finishes_says_first_what_it_held(world):
    one, _, _, heard = world.pair()
    one.slow(30)
    one.send(numbered(1))
    one.finish(limit_s=60)
    world.until(lambda: heard.losses)
    assert numbers(heard) == [1]


def test_nothing_passes_a_stalled_connection_and_afterwards_everything(world):
    one, heard_by_one, two, heard_by_two = world.pair()
    one.stall(True)
    for number in range(200):
        one.send(numbered(number, 1 << 13))
        two.send(numbered(number, 1 << 13))
    pass_time(world, 0.05)
    assert heard_by_one.bodies == heard_by_two.bodies == []
    one.stall(False)
    world.until(lambda: len(heard_by_one.bodies) == len(heard_by_two.bodies) == 200)
    assert numbers(heard_by_one) == numbers(heard_by_two) == list(range(200))


def test_the_end_of_a_stalled_connection_is_noticed_when_it_is_over(world):
    one, heard_by_one, two, _ = world.pair()
    two.send(numbered(1))
    one.stall(True)
    pass_time(world, 0.02)
    two.close()
    pass_time(world, 0.05)
    assert heard_by_one.bodies == heard_by_one.losses == []
    one.stall(False)
    world.until(lambda: heard_by_one.losses)
    assert numbers(heard_by_one) == [1]


def test_one_that_is_stalled_before_it_is_open_says_nothing_until_it_may(world):
    one = world.dial(Recorder())
    one.stall(True)
    one.send(numbered(1))
    world.until(lambda: world.accepted.connections)
    pass_time(world, 0.05)
    assert not world.accepted.bodies
    one.stall(False)
    world.until(lambda: world.accepted.bodies)


def test_a_stalled_connection_can_be_closed(world):
    one, heard_by_one, _, heard_by_two = world.pair()
    one.stall(True)
    one.close()
    one.stall(False)
    world.until(lambda: heard_by_two.losses)
    assert heard_by_one.losses == []
