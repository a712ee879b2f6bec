"""Timers by value: what was replaced or cancelled never fires."""

from snapline.engine.timers import Timers


def test_a_timer_fires_once_for_the_alarm_that_was_set_for_it():
    timers: Timers[str] = Timers()
    alarm = timers.set("round")
    assert timers.fires("round", alarm)
    assert not timers.fires("round", alarm)


def test_setting_a_timer_again_silences_the_alarm_of_the_first():
    timers: Timers[str] = Timers()
    first = timers.set("round")
    second = timers.set("round")
    assert not timers.fires("round", first)
    assert timers.fires("round", second)


def test_a_cancelled_timer_does_not_fire_and_cancelling_it_again_is_no_error():
    timers: Timers[str] = Timers()
    alarm = timers.set("round")
    timers.cancel("round")
    timers.cancel("round")
    assert not timers.fires("round", alarm)


def test_timers_of_different_values_do_not_disturb_each_other():
    timers: Timers[str] = Timers()
    round_alarm, deadline_alarm = timers.set("round"), timers.set("deadline")
    timers.cancel("deadline")
    assert timers.fires("round", round_alarm)
    assert not timers.fires("deadline", deadline_alarm)


def test_an_alarm_from_before_a_clearing_does_not_fire_a_timer_set_after_it():
    timers: Timers[str] = Timers()
    old = timers.set("round")
    timers.clear()
    new = timers.set("round")
    assert not timers.fires("round", old)
    assert timers.fires("round", new)
