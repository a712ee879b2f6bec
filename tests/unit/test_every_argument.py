"""Every argument of every public function: what it cannot be is one sentence that has its name."""

import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

import snapline
from snapline import api
from snapline.errors import UsageError
from snapline.runs import run as run_module

HUGE = 10**30
NUMBERS = ["2", 2.0, float("nan"), True, None, -1, HUGE, b"2"]
DURATIONS = [
    None,
    3.5,
    float("nan"),
    True,
    "soon",
    "",
    "5",
    -1,
    "-1s",
    "9999999h",
    HUGE,
    "1" * 5_000,
]
NAMES = [None, 3, True, "", "alinged", ["aligned"]]
TEXTS = [3, True, "", " ", "a\0b", b"x"]
FLAGS = [None, 1, "yes"]
PATHS = [3, None, True, "", b"x", "a\0b"]

WRONG: dict[str, list[Any]] = {
    "slots": [0, *(value for value in NUMBERS if value is not None)],
    "spares": NUMBERS,
    "rate": [0, "fast", "1e99", "2000", *NUMBERS],
    "records": [0, *NUMBERS],
    "seed": NUMBERS,
    "line": [0, *NUMBERS],
    "hot": [101, *NUMBERS],
    "publish_lag": [16, *NUMBERS],
    "retain": [0, "0s", "1s", *(value for value in DURATIONS if value is not None)],
    "warm_up": DURATIONS,
    "interval": [0, "0s", *DURATIONS],
    "duration": [0, "0ms", *DURATIONS],
    "hot_moves": DURATIONS,
    "heartbeat": [0, *DURATIONS],
    "silence": [0, *DURATIONS],
    "restart_failures": [0, *NUMBERS],
    "restart_window": [0, *DURATIONS],
    "protocol": NAMES,
    "guarantee": [value for value in NAMES if value is not None],
    "size": NAMES,
    "journal": NAMES,
    "faults": [3, None, True, b"kill", [3], {"kill": 1}],
    "chaos": TEXTS,
    "settings": [3, "x", [1], {1: 2}, {"a": None}, {"a": 1.5}, {"a": True}],
    "options": [3, "x", [1], {1: 2}],
    "pools": [3, "x", [1], {"model": 0}, {"model": "1"}, {"model": True}],
    "save": [3, "x", [1], {"count": "soon"}, {"count": 0}, {"count": None}, {1: "1s"}],
    "inputs": [3, "x", [1], {"count": "loose"}, {"count": 0}, {"count": "wait:0"}, {1: "keep"}],
    "input": [value for value in PATHS if value is not None],
    "reference": FLAGS,
    "oversubscribe": FLAGS,
    "allow_vacuous": FLAGS,
    "shared": FLAGS,
    "listen": [None, *TEXTS],
    "runs": PATHS,
    "watcher": [3, "x", object()],
    "spark": [3, "local[2]", object()],
    "flow": [3, True, ["q12"]],
    "system": [3, None, "", object()],
    "name": [None, *TEXTS],
    "directory": PATHS,
    "source": [None, *TEXTS],
    "path": PATHS,
    "time": TEXTS,
    "disorder": DURATIONS,
    "listener": [3, "x", object()],
    "resume": TEXTS,
    "build": [3, None, "query.py:build"],
    "df": [3, None, "rows", [(1,)]],
    "mode": NAMES,
    "key": [3, None, b"id", [3], {"id": 1}],
    "write": [3, "append"],
    "read": [3, "out"],
    "batches": [0, *NUMBERS],
    "frame": [None, 3, "bids", object()],
    "idle": [0, *DURATIONS],
    "available_now": FLAGS,
}
SESSION = Mock(spec=SparkSession, version="4.0.0")
SESSION.sparkContext._jsc = object()
TABLE = Mock(spec=DataFrame, isStreaming=False, sparkSession=SESSION)
SOUND: dict[str, dict[str, Any]] = {
    "run": {"flow": "q12"},
    "run_on": {"system": "structured-streaming", "flow": "sst"},
    "resume": {},
    "start": {"flow": "q12"},
    "fork": {"name": "last", "line": 3},
    "open_run": {},
    "stored": {"directory": "input", "source": "bids"},
    "parquet": {"path": "bids"},
    "check_stream": {"build": len, "df": TABLE},
    "stream": {"frame": SimpleNamespace(mapInArrow=None, isStreaming=True)},
}
PLACES = [
    (function, name)
    for function in SOUND
    for name in inspect.signature(getattr(snapline, function)).parameters
]


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_module, "own_session", lambda *_: pytest.fail("Spark was started"))
    yield
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("function", "name"), PLACES)
def test_what_an_argument_cannot_be_is_said_with_its_name(function, name):
    """None is what an argument cannot be, unless that is its default."""
    default = inspect.signature(getattr(snapline, function)).parameters[name].default
    for value in (value for value in WRONG[name] if value is not None or default is not None):
        with pytest.raises(UsageError) as refused:
            getattr(snapline, function)(**{**SOUND[function], name: value})
        message = str(refused.value)
        assert message.startswith((f"{name} is ", f"{name}: ")), (value, message)
        assert "\n" not in message
        assert len(message) < 400


@pytest.mark.parametrize("function", SOUND)
def test_a_name_that_a_function_does_not_have_is_said(function):
    with pytest.raises(UsageError, match=rf"^{function}\(\) has no argument 'slotz'; "):
        getattr(snapline, function)(**SOUND[function], slotz=2)
    with pytest.raises(UsageError, match=rf"^{function}\(\): too many positional arguments"):
        getattr(snapline, function)(*["x"] * 9)


def test_the_nearest_name_is_suggested():
    with pytest.raises(UsageError, match=r"no argument 'slotz'; did you mean slots"):
        api.run("q12", slotz=2)  # type: ignore[call-arg]  # that is what is tested
    with pytest.raises(UsageError, match=r"no protocol 'alinged'; did you mean aligned"):
        api.run("q12", protocol="alinged")
    with pytest.raises(UsageError, match=r"no protocol 'ALIGNED'; did you mean aligned"):
        api.run("q12", protocol="ALIGNED")
    with pytest.raises(AttributeError, match=r"no 'DataFlow': did you mean Dataflow\?$"):
        _ = snapline.DataFlow
    with pytest.raises(UsageError, match=r"missing a required argument: 'flow'"):
        api.run()  # type: ignore[call-arg]  # that is what is tested


def test_numbers_of_numpy_and_paths_are_taken_and_become_plain(monkeypatch):
    prepared = []
    monkeypatch.setattr(run_module, "carry_out", lambda run, *rest: prepared.append(run))
    api.run("q12", slots=np.int64(2), duration=np.int32(1_500), interval="1.5s", runs="here")
    spec = prepared[0].spec
    assert (spec.slots, type(spec.slots), spec.duration_ms, spec.interval_ms) == (
        2,
        int,
        1_500,
        1_500,
    )
    assert prepared[0].runs == Path("here")


def test_more_records_than_can_be_numbered_are_refused():
    with pytest.raises(UsageError, match=r"lower rate or a shorter duration"):
        api.run("q12", slots=1, rate=1_000_000, duration="8760h")
