"""When the next process is started, and when a run is given up: scenarios, told by the second."""

import pytest

from snapline.errors import OperatorFailed
from snapline.runtime.driver.restart import GivenUp, ProcessFailure, RestartPolicy, RestartStrategy

KILLED = "killed by signal 9"


class Script:
    """A strategy, and the words in which a scenario is written."""

    def __init__(self, failures=10, window_s=60.0, lines=True):
        self.strategy = RestartStrategy(RestartPolicy(failures, window_s), lines=lines)
        self.started_s = 0.0

    def fails(self, now_s, reason=KILLED, started_s=None, **more):
        """The newest process fails, unless another is meant; how long until the next, or the end."""
        started_s = self.started_s if started_s is None else started_s
        answer = self.strategy.failed(now_s, ProcessFailure("tag", reason, started_s, **more))
        if isinstance(answer, GivenUp):
            return answer
        self.started_s = answer
        return round(answer - now_s, 3)

    def loop(self, now_s, lives_s, times):
        """So many processes one after the other that live for so long each."""
        delays = []
        for _ in range(times):
            now_s = max(now_s, self.started_s) + lives_s
            delays.append(self.fails(now_s))
            if isinstance(delays[-1], GivenUp):
                break
        return delays


def raised(operator="map", kind="KeyError"):
    return OperatorFailed(operator, kind, "'colour'", "flow.py, line 7", "message 3 of a/0>map/0")


def test_the_first_failure_is_answered_at_once_and_each_further_one_later():
    delays = Script(failures=99).loop(0.0, 0.5, 11)
    assert delays == [0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10, 10]


def test_a_new_line_forgets_everything():
    script = Script()
    assert script.loop(0.0, 0.5, 9)[-1] == 10
    script.strategy.progress()
    assert script.loop(100.0, 0.5, 9)[0] == 0


@pytest.mark.parametrize("lives_s", [0.2, 5.0, 61.0])
def test_ten_in_a_row_are_too_many_however_long_each_takes_to_fail(lives_s):
    """None of them ever runs, be it that it dies at once or that it never registers."""
    *delays, end = Script().loop(0.0, lives_s, 10)
    assert len(delays) == 9
    assert isinstance(end, GivenUp)
    assert end.raised is None


def test_who_gives_up_says_the_first_reason_first_and_how_often_and_what_to_do():
    script = Script(failures=2)
    script.fails(1.0, "No space left on device")
    end = script.fails(3.5, "something else")
    assert end.story.startswith("No space left on device; in 2 s 2 processes failed")
    assert "--restart-failures" in end.story


def test_the_reason_may_become_known_later():
    script = Script(failures=2)
    script.fails(1.0, "its connection broke")
    script.strategy.explain("another", "no")
    script.strategy.explain("tag", KILLED)
    assert script.fails(3.0).story.startswith(KILLED)


def test_failures_never_count_for_ever_also_without_a_line():
    """The interval between two lines may be longer than that between two failures."""
    script = Script()
    now_s = 0.0
    for _ in range(50):
        script.strategy.runs(now_s)
        now_s += 20.0
        assert script.fails(now_s) in (0, 0.1, 0.2, 0.4)


def test_what_dies_together_counts_once():
    """An executor of twelve slots dies, and what was about to replace the first of them lives."""
    script = Script()
    delays = [script.fails(5.0 + moment / 100, started_s=0.0) for moment in range(12)]
    assert delays == [0] * 12
    assert script.fails(6.0, started_s=5.0) == 0.1


def test_who_dies_together_with_others_waits_as_long_as_they():
    script = Script()
    script.loop(0.0, 0.5, 4)
    now_s = script.started_s + 0.5
    assert script.fails(now_s) == 0.8
    assert script.fails(now_s + 0.3, started_s=now_s - 0.1) == 0.5


def test_faults_that_were_asked_for_do_not_count_however_many_there_are():
    script = Script()
    assert [script.fails(second, planned=True) for second in range(300)] == [0] * 300
    assert script.fails(300.0) == 0


def test_an_operator_that_raises_is_started_again_once():
    script = Script()
    assert script.fails(1.0, epoch=1, raised=raised()) == 0
    end = script.fails(2.0, epoch=2, raised=raised())
    assert end.raised is not None
    assert end.story.startswith("operator 'map' failed: KeyError: 'colour', at flow.py, line 7, on")


@pytest.mark.parametrize(
    ("second", "ended"),
    [
        ({"epoch": 1, "started_s": 0.0}, False),  # another slot, at the same time
        ({"epoch": 2, "started_s": 0.0}, True),  # another slot, that was rolled back
        ({"epoch": 1, "started_s": 1.0}, True),  # a slot that restarts alone
    ],
)
def test_only_what_began_after_the_first_is_a_second_time(second, ended):
    script = Script()
    script.fails(1.0, epoch=1, started_s=0.0, raised=raised())
    assert isinstance(script.fails(1.2, raised=raised(), **second), GivenUp) is ended


@pytest.mark.parametrize(
    "other", [raised(operator="filter"), raised(kind="ValueError"), None], ids=str
)
def test_another_operator_or_another_exception_is_another_trouble(other):
    script = Script()
    script.fails(1.0, epoch=1, raised=raised())
    assert script.fails(2.0, epoch=2, raised=other) == 0.1


def test_an_exception_that_comes_back_after_a_line_is_a_first_one_again():
    script = Script()
    for epoch in range(20):
        assert script.fails(float(epoch), epoch=epoch, raised=raised()) == 0
        script.strategy.progress()


def test_without_lines_ten_seconds_of_all_slots_are_progress():
    script = Script(lines=False)
    script.loop(0.0, 0.5, 9)
    script.strategy.runs(50.0)
    assert script.fails(60.0) == 0


def test_without_lines_slots_that_hardly_run_are_given_up():
    script = Script(lines=False)
    for _ in range(9):
        script.strategy.runs(script.started_s + 1)
        assert not isinstance(script.fails(script.started_s + 3), GivenUp)
    assert isinstance(script.fails(script.started_s + 3), GivenUp)


def test_with_lines_ten_seconds_are_none():
    script = Script()
    script.fails(0.0)
    script.strategy.runs(1.0)
    assert script.fails(11.0) == 0.1


def test_damage_that_comes_again_ends_the_run():
    script = Script()
    damage = {"reason": "a slot ended with ObjectDamaged: log 3 is damaged", "damage": True}
    assert script.fails(1.0, **damage) == 0
    end = script.fails(2.0, **damage)
    assert isinstance(end, GivenUp)
    assert end.story.startswith(
        "a slot ended with ObjectDamaged: log 3 is damaged; it did so before"
    )


def test_other_damage_or_damage_after_a_line_is_tried_again():
    script = Script()
    assert script.fails(1.0, "log 3 is damaged", damage=True) == 0
    assert script.fails(2.0, "log 4 is damaged", damage=True) == 0.1
    script.strategy.progress()
    assert script.fails(9.0, "log 3 is damaged", damage=True) == 0


@pytest.mark.parametrize("lines", [True, False])
def test_an_operator_that_does_not_come_back_twice_never_will(lines):
    """While it computed, the slots seemed to run: for longer than what forgets failures without lines."""
    script = Script(lines=lines)
    script.strategy.runs(0.0)
    assert script.fails(120.0, "it has not come back", stuck=True) == 0
    script.strategy.runs(121.0)
    end = script.fails(241.0, "it has not come back", stuck=True)
    assert isinstance(end, GivenUp)
    assert end.story.startswith("it has not come back; it did so before")
