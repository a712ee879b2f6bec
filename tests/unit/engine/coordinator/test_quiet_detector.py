"""When a job is done: two equal waves, nothing unread, as many received as sent."""

from dataclasses import replace

import pytest

from engine_fakes import AB, TOPOLOGY, A, B, meta
from snapline.core.topology import Topology
from snapline.engine.control import Counters
from snapline.engine.coordinator.quiet import Final, QuietDetector, covers


@pytest.fixture
def quiet():
    """Two slots that have read all their input."""
    detector = QuietDetector((0, 1))
    detector.input_read(0)
    detector.input_read(1)
    return detector


def wave(quiet, *, sent, received, busy=False):
    """Slot 0 sends on the one channel, slot 1 receives; whether the wave finds the job quiet."""
    number = quiet.next_wave()
    assert not quiet.answer(0, Counters(1, number, {AB: sent}, {}, {AB: sent}, busy, {}))
    assert quiet.answer(1, Counters(1, number, {}, {AB: received}, {}, False, {}))
    return quiet.is_quiet()


def test_all_slots_must_have_read_their_input():
    quiet = QuietDetector((0, 1))
    assert not quiet.input_read(0)
    assert not quiet.input_read(0)
    assert quiet.input_read(1)


def test_unread_input_at_a_source_keeps_the_job_awake():
    quiet = QuietDetector((0, 1))
    quiet.input_read(0)
    assert not wave(quiet, sent=5, received=5)
    assert not wave(quiet, sent=5, received=5)


def test_one_wave_is_not_enough(quiet):
    assert not wave(quiet, sent=5, received=5)
    assert wave(quiet, sent=5, received=5)


def test_a_message_that_is_counted_at_one_end_only_keeps_the_job_awake(quiet):
    """Asked early, the sender has not sent it; asked late, the receiver has it and sent another."""
    assert not wave(quiet, sent=5, received=5)
    assert not wave(quiet, sent=6, received=6)
    assert wave(quiet, sent=6, received=6)


def test_what_is_under_way_keeps_the_job_awake_and_two_more_waves_are_needed(quiet):
    assert not wave(quiet, sent=5, received=5)
    assert not wave(quiet, sent=5, received=4)
    assert not wave(quiet, sent=5, received=5)
    assert wave(quiet, sent=5, received=5)


def test_unread_input_keeps_the_job_awake_although_the_counters_agree(quiet):
    assert not wave(quiet, sent=5, received=5, busy=True)
    assert not wave(quiet, sent=5, received=5)
    assert wave(quiet, sent=5, received=5)


def test_answers_to_an_older_wave_do_not_count(quiet):
    quiet.next_wave()
    quiet.next_wave()
    stale, fresh = (Counters(1, number, {}, {}, {}, False, {}) for number in (1, 2))
    assert not quiet.answer(0, fresh)
    assert not quiet.answer(1, stale)
    assert quiet.answer(1, fresh)


def test_a_slot_that_restarts_alone_must_read_and_answer_again(quiet):
    wave(quiet, sent=5, received=5)
    quiet.lost(1)
    assert not wave(quiet, sent=5, received=5)
    assert not wave(quiet, sent=5, received=5)
    quiet.lost(1)
    assert quiet.input_read(1)
    assert not wave(quiet, sent=5, received=5)
    assert wave(quiet, sent=5, received=5)


def test_the_last_numbers_of_the_channels_are_known_when_the_job_is_quiet(quiet):
    wave(quiet, sent=5, received=5)
    wave(quiet, sent=5, received=5)
    assert quiet.seqs == {AB: 5}


@pytest.mark.parametrize(
    ("sent", "received", "whole"), [(5, 5, True), (5, 4, False), (4, 4, False), (6, 5, False)]
)
def test_a_line_covers_the_run_when_both_ends_have_the_last_message(sent, received, whole):
    line = {A: meta("a", 1, sent={AB: sent}), B: meta("b", 1, received={AB: received})}
    assert covers(TOPOLOGY, line, Final({AB: 5})) is whole


def test_the_initial_states_cover_a_run_in_which_nothing_was_sent():
    assert covers(TOPOLOGY, {A: meta("a", 0), B: meta("b", 0)}, Final({AB: 0}))


# A job that is to stop before its input ends.


def test_a_job_whose_sources_are_held_is_quiet_before_its_input_is_read():
    quiet = QuietDetector((0, 1))
    wave(quiet, sent=5, received=5)
    quiet.next_wave()
    quiet.answer(0, Counters(1, 2, {AB: 5}, {}, {AB: 5}, False, {A: 9}))
    quiet.answer(1, Counters(1, 2, {}, {AB: 5}, {}, False, {}))
    assert quiet.is_quiet(held=True)
    assert quiet.final() == Final({AB: 5}, {A: 9})


@pytest.mark.parametrize(("rows", "whole"), [(9, True), (8, False)])
def test_of_a_task_without_channels_all_rows_must_be_in_the_last_line(rows, whole):
    alone = Topology((A,), ())
    assert covers(alone, {A: replace(meta("a", 1), position=rows)}, Final({}, {A: 9})) is whole
    assert not covers(alone, {A: replace(meta("a", 1), position=rows)}, Final({}))
