"""Spark is asked which executors are to go, and those slots are named that run there."""

import threading
from types import SimpleNamespace

import pytest

from snapline.runtime.launch import decommissioning
from snapline.runtime.launch.decommissioning import DecommissionWatch, is_watched


class Option:
    def __init__(self, defined):
        self.isDefined = lambda: defined


class Scheduler:
    """Spark's scheduler, as Java shows it to Python; these executors are to go."""

    def __init__(self, *going):
        self.going = list(going)

    def executorsPendingDecommission(self):
        return SimpleNamespace(isEmpty=lambda: not self.going)

    def getExecutorDecommissionState(self, executor):
        return Option(executor in self.going)


def watch(scheduler, where):
    """A watch, what it has told, and how often it has asked where slots run."""
    told, asked = [], []

    def executors():
        asked.append(None)
        return where

    java = SimpleNamespace(sc=lambda: SimpleNamespace(taskScheduler=lambda: scheduler))
    return DecommissionWatch(SimpleNamespace(_jsc=java), executors, told.append), told, asked


def test_the_slots_of_an_executor_that_is_to_go_are_named_each_time():
    scheduler = Scheduler()
    where = {"a": {"0"}, "b": {"1"}, "waits for a core": set(), "tried twice": {"0", "1"}}
    looking, told, _ = watch(scheduler, where)
    looking.look()
    assert told == []
    scheduler.going.append("1")
    looking.look()
    looking.look()
    assert told == [["b", "tried twice"]] * 2
    where["b"] = {"2"}
    del where["tried twice"]
    looking.look()
    assert len(told) == 2


def test_nobody_asks_where_slots_run_while_no_executor_is_to_go():
    looking, told, asked = watch(Scheduler(), {"a": {"0"}})
    looking.look()
    assert (told, asked) == ([], [])


def test_a_watch_outlives_a_spark_that_does_not_answer_and_ends_when_it_is_told(monkeypatch):
    class Silent(Scheduler):
        def executorsPendingDecommission(self):
            if not answers.is_set():
                answers.set()
                raise RuntimeError("nobody answers")
            return super().executorsPendingDecommission()

    answers, heard = threading.Event(), threading.Event()
    monkeypatch.setattr(decommissioning, "LOOK_S", 0.001)
    looking, told, _ = watch(Silent("0"), {"a": {"0"}})
    looking._tell = lambda tags: (told.append(tags), heard.set())
    looking.start()
    assert heard.wait(60)
    looking.stop()
    before = len(told)
    assert (answers.is_set(), looking._thread.is_alive()) == (True, False)
    assert told == [["a"]] * before


@pytest.mark.parametrize(
    ("master", "setting", "watched"),
    [
        ("spark://host:7077", "true", True),
        ("k8s://https://api", " True ", True),
        ("local-cluster[2,2,1024]", "true", True),
        ("local[4]", "true", False),
        ("local", "true", False),
        ("spark://host:7077", "false", False),
        ("yarn", None, False),
    ],
)
def test_spark_is_asked_only_where_executors_may_be_decommissioned(master, setting, watched):
    settings = {} if setting is None else {"spark.decommission.enabled": setting}
    context = SimpleNamespace(master=master, getConf=lambda: settings)
    assert is_watched(context) is watched
