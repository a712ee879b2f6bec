"""A run directory is opened and read: nothing that it names is executed."""

from dataclasses import asdict
from functools import partial
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

import snapline as sl
from snapline.cli.app import main
from snapline.errors import UsageError
from snapline.metrics.figures import figures_of
from snapline.metrics.json_form import to_json
from snapline.rundir.directory import RunDirectory
from snapline.rundir.results import VERSION
from snapline.rundir.spec import Spec

FLOW = """
import snapline as sl
from pathlib import Path

Path(__file__).with_name("executed").touch()
flow = sl.Dataflow("f")
flow.source(sl.generated(lambda n: {"key": n % 3}, rate=10)).key_by("key").count().sink("counts")
"""
RESULT = {
    "version": VERSION,
    "kept": "yes",
    "because": "it is",
    "guarantees": {},
    "problems": [],
    "metrics": to_json(figures_of([])),
    "faults": [],
}


class Touched(Exception):
    """Spark was asked for something."""


class NoContext:
    """The context of a session that lives, and only says that it was reached."""

    _jsc = "there"
    applicationId = "one"

    def __getattr__(self, name):
        raise Touched(name)


class NoSpark(SparkSession):
    """A session that only says that it was reached."""

    version = "4.0.0"
    sparkContext = NoContext()

    def __init__(self):
        pass

    def __getattr__(self, name):
        raise Touched(name)


def not_driven(job, directory, *_given, timeline, **_named):
    """A driver that has ended without a run."""
    timeline.attach(None)
    problem = {"problem": "it was not driven", "raised": None}
    tenure = SimpleNamespace(author="me")
    return SimpleNamespace(directory=directory, timeline=timeline, tenure=tenure, **problem)


@pytest.fixture
def file(tmp_path):
    """The name of a flow in a file, which a run that is over says was its own."""
    (tmp_path / "mine.py").write_text(FLOW)
    spec = Spec(f"{tmp_path}/mine.py:flow", slots=1)
    directory = RunDirectory.create(tmp_path / "runs", "mine", "aligned", asdict(spec))
    directory.write("result.json", {**RESULT, "rows": {"counts": 0}})
    return spec.flow


def test_state_of_a_run_does_not_execute_the_file_that_it_names(tmp_path, file):
    run = sl.open_run("last", NoSpark(), tmp_path / "runs")
    assert len(run.batch()) == 0
    with pytest.raises(UsageError, match=r"mine\.py:flow, and .* not executed.* flow= in Python"):
        run.state()
    assert not (tmp_path / "executed").exists()


def test_state_of_a_run_is_read_with_the_flow_that_the_caller_names(tmp_path, file):
    run = sl.open_run("last", NoSpark(), tmp_path / "runs", flow=file)
    assert (tmp_path / "executed").exists()
    with pytest.raises(Touched):
        run.state()


@pytest.mark.parametrize(
    "command",
    [("runs",), ("runs", "show"), ("runs", "output"), ("validate", "last"), ("runs", "rm", "last")],
    ids=" ".join,
)
def test_no_command_that_reads_a_run_executes_the_file_that_it_names(
    tmp_path, file, monkeypatch, command
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["snapline", *command])
    with pytest.raises(SystemExit):
        main()
    assert not (tmp_path / "executed").exists()


def test_a_run_is_judged_with_the_flow_that_its_user_named(tmp_path, file, monkeypatch):
    """Whoever starts a run, or resumes it, trusts its file: the judge is handed the flow."""
    monkeypatch.setattr("snapline.runs.run.check_executors", lambda *_given: None)
    monkeypatch.setattr("snapline.runs.run.drive", not_driven)
    monkeypatch.setattr("snapline.runs.run.check_ready", lambda *_given: None)
    monkeypatch.setattr("snapline.runs.run.check_workers", lambda *_given: None)
    for begin in (partial(sl.run, file, slots=1), partial(sl.resume, "last")):
        run = begin(spark=NoSpark(), runs=tmp_path / "runs")
        assert (run.verdict.kept, run.flow.name) == ("unknown", "f")
