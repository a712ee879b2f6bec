"""What a person reads: one sentence for each cause, and the fault that was active."""

import pytest

from snapline.batch import Batch
from snapline.validate.causes import Cause
from snapline.validate.judged import Witness
from snapline.validate.sentences import (
    TimedFault,
    WitnessEvent,
    active_fault,
    event_of,
    life_of,
    seconds,
    sentence,
)

GET = WitnessEvent(17, 12_300, 7, False, 0, 16)
POST = WitnessEvent(29, 21_000, "/a", True, 1, 28)


def told(cause, *values, event=None, resource=7, window=10_000, **options):
    return sentence(Witness(cause, resource, window, *values), 10_000, event=event, **options)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            told(Cause.INVENTED, 66, 9),
            "The output at position 9 for resource 7, window 10 s to 20 s counts event 66, "
            "which is no input.",
        ),
        (
            told(Cause.INVENTED, None, 9),
            "The output at position 9 for resource 7, window 10 s to 20 s names no input at all.",
        ),
        (
            told(Cause.INVENTED, 66, 3, resource=None, window=None),
            "The late output at position 3 names event 66, which is no input.",
        ),
        (
            told(Cause.WRONG_WINDOW, 17, 9, 10_000, event=GET, window=20_000),
            "The output at position 9 for resource 7, window 20 s to 30 s counts GET 0:16 (id 17), "
            "whose window is 10 s to 20 s.",
        ),
        (
            told(Cause.WRONG_PAIR, 29, 9, 20_000, event=POST),
            "The output at position 9 for resource 7, window 10 s to 20 s is joined with "
            "POST 1:28 (id 29), which belongs to resource '/a', window 20 s to 30 s.",
        ),
        (
            told(Cause.WRONG_PAIR, 29, 9, 20_000),
            "The output at position 9 for resource 7, window 10 s to 20 s is joined with event 29, "
            "which belongs to another resource, or to the window 20 s to 30 s.",
        ),
        (
            told(Cause.MISPLACED, 29, 9, 20_000, event=POST, resource="/a", window=20_000),
            "The output at position 9 for resource '/a', window 20 s to 30 s counts POST 1:28 (id 29) "
            "among the GETs, but it is a POST.",
        ),
        (
            told(Cause.MISPLACED, 17, 9, 10_000, event=GET),
            "The output at position 9 for resource 7, window 10 s to 20 s counts GET 0:16 (id 17) "
            "among the POSTs, but it is a GET.",
        ),
        (
            told(Cause.MISPLACED, 17, 9, 10_000, event=GET, resource=8),
            "The output at position 9 for resource 8, window 10 s to 20 s counts GET 0:16 (id 17), "
            "which belongs to resource 7, window 10 s to 20 s.",
        ),
        (
            told(Cause.MISPLACED, 17, 9, 10_000),
            "The output at position 9 for resource 7, window 10 s to 20 s counts event 17, "
            "which belongs to another resource, or to the other kind.",
        ),
        (
            told(Cause.TWICE_INSIDE, 17, 9, event=GET),
            "The output at position 9 for resource 7, window 10 s to 20 s counts GET 0:16 (id 17) "
            "more than once: the state took it in twice.",
        ),
        (
            told(Cause.WRONG_VALUE, 17, 9),
            "The output at position 9 for resource 7, window 10 s to 20 s has a count that is not "
            "the number of its ids, event 17 among them.",
        ),
        (
            told(Cause.DUPLICATE, 17, 9, 4, label="GET 0:{}".format),
            "The output at position 9 for resource 7, window 10 s to 20 s counts GET 0:17 (id 17), "
            "which is counted at position 4 already.",
        ),
        (
            told(Cause.DUPLICATE, 17, 9),
            "The output at position 9 for resource 7, window 10 s to 20 s counts event 17, "
            "although its window was complete already.",
        ),
        (
            told(Cause.SPLIT, 17, 4, 9, event=GET),
            "The output at position 4 for resource 7, window 10 s to 20 s is without GET 0:16 (id 17), "
            "which is in another one at position 9: no output has all.",
        ),
        (
            told(Cause.NOT_LATE, "a-17", 4, 12_500),
            "Event 'a-17' of resource 7, window 10 s to 20 s is in the late output at position 4, but it "
            "was in time: when it came, no watermark can have been beyond 12.5 s.",
        ),
        (
            told(Cause.LATE_AND_WINDOWED, 17, 2, 9, event=GET),
            "GET 0:16 (id 17) is in the late output at position 2, and was counted for resource 7, "
            "window 10 s to 20 s at position 9.",
        ),
        (
            told(Cause.LATE_TWICE, 17, 2, 5),
            "Event 17 of resource 7, window 10 s to 20 s is late twice, at positions 2 and 5.",
        ),
        (
            told(Cause.TRUNCATED, 17, None),
            "Event 17 is lost: resource 7, window 10 s to 20 s never came out, and no later window did.",
        ),
        (
            told(Cause.MISSING, 17, None, fault="active: kill slot=1 at=8s"),
            "Event 17 is lost: resource 7, window 10 s to 20 s never came out, although the output "
            "goes on; active: kill slot=1 at=8s.",
        ),
        (
            told(Cause.INCOMPLETE, 17, None, 9),
            "Event 17 is lost: the output at position 9 for resource 7, window 10 s to 20 s "
            "is without it.",
        ),
    ],
)
def test_every_cause_has_its_sentence(text, expected):
    assert text == expected


@pytest.mark.parametrize(
    ("window", "size_ms", "span"),
    [
        (0, 400, "0 s to 0.4 s"),
        (-250, 250, "-0.25 s to 0 s"),
        (1_700_000_000_000, 10_000, "2023-11-14 22:13:20 to 22:13:30 UTC"),
        (1_700_000_000_500, 250, "2023-11-14 22:13:20.500 to 22:13:20.750 UTC"),
        (1_700_006_390_000, 10_000, "2023-11-14 23:59:50 to 2023-11-15 00:00:00 UTC"),
        (10**18, 1_000, "1000000000000000 s to 1000000000000001 s"),
    ],
)
def test_a_window_is_a_span_of_readable_time(window, size_ms, span):
    text = sentence(Witness(Cause.MISSING, 1, window, 5, None), size_ms)
    assert f"window {span} never" in text


def test_positions_are_said_in_the_words_of_whoever_numbered_them():
    position = "row {}".format
    twice = Witness(Cause.DUPLICATE, 1, 0, 5, 7, 3)
    assert "position row 7 for" in sentence(twice, 10, position=position)
    assert "counted at position row 3 already" in sentence(twice, 10, position=position)
    moved = Witness(Cause.WRONG_WINDOW, 1, 0, 5, 7, 20_000)
    assert "whose window is 20 s to 30 s" in sentence(moved, 10_000, position=position)


def test_seconds_are_exact():
    assert [seconds(ms) for ms in (0, 7, 8_250, 100_000)] == ["0 s", "0.007 s", "8.25 s", "100 s"]


def test_an_event_is_found_with_all_that_is_known_of_it():
    inputs = Batch.of(
        id=[4, 5], time=[10, 20], resource=["a", "b"], post=[True, False], offset=[0, 1]
    )
    assert event_of(inputs, 4) == WitnessEvent(4, 10, "a", True, None, 0, None)
    assert event_of(inputs.select("id", "time", "resource"), 5) == WitnessEvent(5, 20, "b")
    assert event_of(inputs, 6) is None
    assert event_of(inputs, None) is None


KILL = TimedFault("kill slot=1 at=8s", 8_000)
PAUSE = TimedFault("pause slot=0 at=20s for=5s", 20_000, 25_000)


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        ((7_000, 9_000), "active: kill slot=1 at=8s"),
        ((8_000, 9_000), "active: kill slot=1 at=8s"),
        ((7_000, 8_000), "active: kill slot=1 at=8s"),
        ((24_000, 40_000), "active: pause slot=0 at=20s for=5s"),
        ((22_000, 23_000), "active: pause slot=0 at=20s for=5s"),
        ((0, 40_000), "active: kill slot=1 at=8s (and 1 more)"),
        (
            (0, 7_990),
            "no fault had happened yet; the first was kill slot=1 at=8s, 0.01 s later",
        ),
        ((11_000, 19_999), "no fault was active; the last was kill slot=1 at=8s, over 3 s before"),
        (
            (25_500, 30_000),
            "no fault was active; the last was pause slot=0 at=20s for=5s, over 0.5 s before",
        ),
    ],
)
def test_the_fault_of_a_witness_is_the_one_that_was_active_in_its_life(span, expected):
    assert active_fault([PAUSE, KILL], *span) == expected


def test_without_faults_the_sentence_says_so():
    assert active_fault([], 0, 9) == "no fault was injected"


def test_a_witness_lives_from_its_arrival_until_its_window_waits_no_more():
    witness = Witness(Cause.MISSING, 7, 10_000, 17, None)
    assert life_of(witness, 10_000) == (10_000, 20_000)
    assert life_of(witness, 10_000, lateness_ms=500, event=GET) == (12_300, 20_500)
    arrived = WitnessEvent(17, 1_700_000_004_000, 7, arrival=3_000)
    assert life_of(witness, 10_000, lateness_ms=500, event=arrived) == (3_000, 9_500)
    assert life_of(witness, 10_000, event=arrived, written_ms=30_000) == (3_000, 30_000)
    assert life_of(Witness(Cause.INVENTED, None, None, 5, 3), 1_000, written_ms=2_500) == (0, 2_500)
