"""Callbacks of a user: what each is told, and that none of them is needed."""

from types import SimpleNamespace

import pytest

from snapline.engine.coordinator.holding import STOPPED
from snapline.journal.entry import COORDINATOR, Happened
from snapline.journal.happenings import JobRecovered, JobRunning, SlotLeaving, SlotLost
from snapline.metrics.second import Second
from snapline.runs import query
from snapline.runs.listener import (
    Listening,
    RunEnd,
    RunProgress,
    RunRecovered,
    SlotDeparture,
    SlotLoss,
)


class All:
    def __init__(self):
        self.told = []
        self.on_progress = self.on_loss = self.on_recovered = self.on_end = self.told.append
        self.on_leaving = self.told.append


class OnlyLosses:
    def __init__(self):
        self.told = []

    def on_loss(self, loss):
        self.told.append(loss)


class Watching:
    def __init__(self):
        self.seen = []
        self.event = self.second = self.seen.append


def tell_all(listening: Listening) -> None:
    listening.run = "a-run"
    for at_us, what in (
        (500_000, JobRunning()),
        (1_500_000, SlotLost(1, 3)),
        (2_000_000, SlotLeaving(0, 3)),
        (4_000_000, JobRecovered(2.5, 1_500_000)),
    ):
        listening.event(Happened(at_us, COORDINATOR, 1, what))
    listening.second(Second(4, running=2, read=70, written=60, backlog=0, lines=3, checkpoints=9))
    listening.ended("stopped with a last line", None)


def test_a_listener_hears_of_losses_recoveries_seconds_and_the_end():
    listener, watcher = All(), Watching()
    tell_all(Listening(listener, watcher))
    assert listener.told == [
        SlotLoss("a-run", 1.5, 1),
        SlotDeparture("a-run", 2.0, 0),
        RunRecovered("a-run", 4.0, 2.5),
        RunProgress("a-run", 4, 2, 70, 60, 0, 3, 9, None, None),
        RunEnd("a-run", "stopped with a last line", None),
    ]
    assert len(watcher.seen) == 5


def test_methods_that_a_listener_lacks_are_not_called():
    listener = OnlyLosses()
    tell_all(Listening(listener))
    assert listener.told == [SlotLoss("a-run", 1.5, 1)]
    tell_all(Listening(None))


def test_what_a_listener_raises_comes_out_and_a_run_that_never_began_has_no_end():
    listener = All()
    listener.on_loss = lambda loss: 1 / 0
    with pytest.raises(ZeroDivisionError):
        tell_all(Listening(listener))
    Listening(listener).ended("it did not start", None)
    assert listener.told == []


class FailsAtTheEnd:
    def __init__(self):
        self.told = []

    def on_end(self, end):
        self.told.append(end.problem)
        raise ZeroDivisionError("on purpose")


def test_a_listener_that_raises_at_the_end_is_told_of_it_once():
    listener = FailsAtTheEnd()
    listening = Listening(listener)
    with pytest.raises(ZeroDivisionError):
        tell_all(listening)
    listening.ended("division by zero", None)
    assert listener.told == ["stopped with a last line"]


class EndedDriver:
    """A driver that has stopped with a last line before anybody asked."""

    problem = STOPPED

    def __init__(self):
        self.directory = SimpleNamespace(name="a-run")


def ended_query(monkeypatch, listener, error=None):
    """A query whose driver ends at once, with an error if one is given."""

    def drive_prepared(prepared, timeouts, watcher, begun):
        driver = EndedDriver()
        begun(driver)
        if error is not None:
            raise error
        return prepared, driver

    monkeypatch.setattr(query, "drive_prepared", drive_prepared)
    asked = query.Query(None, listener=listener)
    asked.begin()
    assert asked._over.wait(60)
    return asked


def test_a_query_calls_a_listener_that_raises_at_the_end_once_and_has_its_error(monkeypatch):
    listener = FailsAtTheEnd()
    asked = ended_query(monkeypatch, listener)
    assert listener.told == [STOPPED]
    assert isinstance(asked.exception(), ZeroDivisionError)


def test_a_listener_that_raises_does_not_hide_what_ended_its_query(monkeypatch):
    listener = FailsAtTheEnd()
    asked = ended_query(monkeypatch, listener, OSError("the disk is gone"))
    assert listener.told == ["the disk is gone"]
    assert isinstance(asked.exception(), OSError)
    assert asked.exception().__notes__ == [
        "the listener raised, too: ZeroDivisionError('on purpose')"
    ]
