"""`snapline run` and `runs` with wrong input: exit code 2, one clear message, nothing begun or written."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from snapline.cli.app import main
from snapline.cli.run import _with_pages
from snapline.errors import FlowFailed, UsageError
from snapline.rundir.directory import RunDirectory
from snapline.rundir.spec import Spec, spec_of
from snapline.rundir.stored_input import VERSION
from snapline.runs import run as run_module
from snapline.runs.run import PreparedRun
from snapline.runtime.driver.restart import RestartPolicy

NONE = ("--protocol", "none")
ONE = ("--protocol", "aligned", "--workload", "counting", "--seed", "1")
CYCLE = ("run", "reachability", "--protocol", "aligned")
FLOW = """import snapline as sl
flow = sl.Dataflow("mine")
flow.source(sl.nexmark.bids(rate=10, seed=1)).key_by("colour").count().sink("counts")
"""


@pytest.fixture
def snapline(monkeypatch, capsys, tmp_path):
    """The command as it is called, in an empty directory, and without a Spark to start."""

    def refuse(*slots):
        raise AssertionError("a Spark was started for bad input")

    monkeypatch.setattr(run_module, "own_session", refuse)
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["snapline", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        told = capsys.readouterr()
        return left.value.code, told.out, told.err

    return call


def files(directory):
    return {path: path.stat().st_mtime_ns for path in directory.rglob("*")}


def refused(snapline, tmp_path, *arguments):
    """The one message of a command that must do nothing."""
    before = files(tmp_path)
    code, out, err = snapline(*arguments)
    assert (code, out) == (2, ""), err
    assert files(tmp_path) == before
    assert err.startswith("bad input: ")
    return err.strip()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "q99"), "no workload 'q99'"),
        (
            ("run", "q12", "--rate", "0"),
            "from 1 to 1,000,000,000, or 'max', not 0",
        ),
        (("run", "q12", "--rate", "fast"), "or 'max', not 'fast'"),
        (("run", "q12", "--protocol", "hopeful"), "no protocol 'hopeful'"),
        (CYCLE, "aligned cannot run a dataflow with a cycle: choose one of"),
        (("run", "q12", "--faults", "tickle slot=1 at=2s"), "tickle"),
        (("run", "q12", "--faults", "kill slot=1 at=noon"), "noon"),
        (("run", "q12", "--faults", "@nowhere.txt"), "cannot read the faults in nowhere.txt"),
        (("run", "q12", "--faults", "kill executor=0 at=1s"), "no executor of its own"),
        (("simulate", "--faults", "@nowhere.txt"), "cannot read the faults in nowhere.txt"),
        (("run", "q12", "--slots", "2", "--faults", "kill slot=7 at=1s"), "there is no slot 7"),
        (("run", "q12", "--faults", "kill slot=0 step=3"), "'snapline simulate' can do it"),
        (("run", "q12", "--chaos", "often"), "often"),
        (("run", "q12", "--chaos", "seed=x"), "seed"),
        (("run", "q12", "--chaos", "seed=1", "--faults", "kill slot=0 at=1s"), "exclude each oth"),
        (("run", "q12", "--duration", "soon"), "--duration"),
        (("run", "q12", "--interval", "-3s"), "--interval"),
        (("run", "q12", "--duration", "0s"), "--duration is from 1ms to 8760h, not 0s"),
        (("run", "q12", "--heartbeat", "1s", "--silence", "1s"), "at least two heartbeats"),
        (("run", "q12", "--restart-failures", "0"), "--restart-failures is a whole number from 1"),
        (("run", "q12", "--restart-window", "0s"), "--restart-window"),
        (("run", "q12", "--restart-window", "soon"), "restart-window"),
        (("run", "q12", "--input", "nowhere"), "holds no input"),
        (("run", "q12", "--input", "nowhere", "--hot", "5"), "--hot is for input that is made now"),
        (("run", "q12", "--size", "huge"), "--size is full or small, not 'huge'"),
        (("run", "q12", "--hot", "101"), "--hot is a whole number from 0 to 100, not 101"),
        (("run", "q12", "--hot", "-1"), "--hot is a whole number from 0 to 100, not -1"),
        (("run", "q12", "--hot-moves", "5s"), "say how hot it is, as in --hot 20"),
        (("run", "q12", "--hot", "20", "--hot-moves", "often"), "--hot-moves is written as"),
        (("run", "q12", "--guarantee", "exactly-once", "--protocol", "none"), "cannot promise"),
        (("run",), "say what to run"),
        (("run", "q12", "--resume", "last"), "say what to run"),
        (("run", "--resume", "last", "--interval", "1s"), "--interval describes a new run"),
        (("run", "q12", "--fork", "last"), "say what to run"),
        (("run", "q12", "--line", "3"), "--line says at which line a fork begins: say --fork RUN"),
        (
            ("run", "--fork", "x", "--line", "3", "--protocol", "hmnr"),
            "--protocol describes a new run",
        ),
        (
            ("run", "--fork", "x", "--line", "3", "--slots", "4"),
            "a fork has the flow, slots, protocol",
        ),
        (("run", "--fork", "x", "--resume", "x"), "--fork and --resume exclude each other"),
        (("run", "--resume", "x", "--line", "3"), "--line and --resume exclude each other"),
        (("run", "--fork", "x", "--line", "3"), "there is no run 'x'"),
        (("run", "--resume", "last", "--option", "batch=5"), "--option describes a new run"),
        (("run", "q12", "--option", "line_max_lag=3"), "changes nothing under aligned"),
        (("run", "q12", "--records", "5"), "say --rate max, too"),
        (("run", "q12", *NONE, "--interval", "5s"), "--interval changes nothing under none"),
        (("run", "q12", *NONE, "--publish-lag", "0"), "--publish-lag changes nothing under none"),
        (("run", "q12", *NONE, "--retain", "10m"), "--retain changes nothing under none"),
        (
            ("run", "q12", "--warm-up", "21s"),
            "--warm-up is at most --duration, here 20s, and not 21s",
        ),
        (
            ("run", "sst", "--system", "structured-streaming", "--warm-up", "1s"),
            "--warm-up is for Snapline's own engine",
        ),
        (("run", "q12", "--retain", "19s"), "at least 4 times --interval, here 20s, and not 19s"),
        (("run", "q12", "--retain", "1h", "--reference"), "--retain does not go together with"),
        (("run", "q12", *NONE, "--option", "kept_lines=3"), "changes nothing under none"),
        (("run", "q12", "--input", "in", "--rate", "2000"), "--rate is for input that is made dur"),
        (("run", "q12", "--input", "in", "--duration", "9s"), "--duration is for input that is m"),
        (("simulate", *ONE, "--jobs", "2"), "--jobs is for several runs at the same time"),
        (("simulate", "--repeat", "f", "--jobs", "2"), "--repeat brings its own run"),
        (("simulate", "--allow-vacuous"), "--allow-vacuous is for a single run"),
        (("validate", "--input", "a", "--output", "b", "--runs", "c"), "--runs is for a RUN"),
        (("runs", "list", "last"), "'snapline runs show RUN' shows one"),
        (("runs", "--limit", "20"), "--limit is for 'snapline runs output', not for 'runs list'"),
        (("runs", "show", "last", "--format", "csv"), "--format is for 'snapline runs output'"),
        (("runs", "rm", "last", "--json"), "--json has no effect on 'snapline runs rm'"),
        (("runs", "output", "last", "--to", "x.csv", "--limit", "5"), "--limit is for rows that a"),
        (("runs", "output", "last", "--json", "--format", "csv"), "--format and --json exclude"),
        (("run", "--resume", "nowhere"), "there is no run 'nowhere'"),
        (("run", "--resume", "last"), "there are no runs"),
        (("run", "nowhere.py:flow"), "nowhere.py"),
        (("runs", "show", "nowhere"), "there is no run 'nowhere'"),
        (("runs", "output"), "there are no runs"),
        (("runs", "rm"), "say which run"),
        (("runs", "burn"), "not 'burn'"),
    ],
)
def test_wrong_input_is_one_message_and_exit_code_2(snapline, tmp_path, arguments, message):
    assert message in refused(snapline, tmp_path, *arguments)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FLOW, "mine.py, line 3: 'source' has no column colour to key by"),
        ("flow = (\n", "mine.py, line 1: "),
        ("flow = 1 / 0\n", "mine.py, line 1: ZeroDivisionError"),
        ("flow = 3\n", "mine.py:flow is a int"),
    ],
)
def test_an_error_in_a_flow_file_is_one_message_with_its_line(snapline, tmp_path, text, message):
    (tmp_path / "mine.py").write_text(text)
    assert message in refused(snapline, tmp_path, "run", "mine.py:flow")


def test_input_of_another_workload_is_refused(snapline, tmp_path):
    described = {
        "version": VERSION,
        "workload": "q3",
        "format": "log",
        "sources": {},
        "params": {"seed": 5, "partitions": 2, "records": 50, "duration_ms": 1_000},
    }
    (tmp_path / "input").mkdir()
    (tmp_path / "input" / "input.json").write_text(json.dumps(described))
    message = refused(snapline, tmp_path, "run", "q12", "--input", "input")
    assert message.endswith("input holds input for q3, not for q12")


@pytest.mark.parametrize(
    "given", [("--hot", "20"), ("--rate", "500"), ("--records", "7"), ("--size", "small")]
)
def test_a_flow_of_ones_own_says_itself_what_its_input_is(snapline, tmp_path, given):
    (tmp_path / "mine.py").write_text(FLOW.replace("colour", "bidder"))
    message = refused(snapline, tmp_path, "run", "mine.py:flow", *given)
    assert message.endswith(f"{given[0]} is for workloads; mine.py:flow brings its own sources")


def test_a_run_shows_only_what_applies_to_it(tmp_path):
    own = Spec("mine.py:flow", slots=1)
    assert not {"rate", "records", "size", "hot", "settings", "input"} & own.said().keys()
    assert "rate" not in repr(own)
    directory = RunDirectory.create(tmp_path / "runs", "mine", "aligned", own.said())
    assert spec_of(directory) == own
    assert "records" not in Spec("q12").said()
    assert Spec("q12", rate="max").said()["records"] == 1_000_000
    assert repr(Spec("q12")).startswith("Spec(flow='q12', protocol='aligned', ")


def test_size_and_skew_reach_the_input_and_a_resume(snapline, tmp_path, monkeypatch):
    asked = []

    def carry_out(prepared, *rest):
        asked.append(prepared.spec)
        raise UsageError("enough")

    monkeypatch.setattr(run_module, "carry_out", carry_out)
    snapline("run", "q12", "--size", "small", "--hot", "20", "--hot-moves", "1.5s")
    snapline("run", "q12")
    chosen, usual = asked
    assert (chosen.params.full, chosen.params.hot, chosen.params.hot_ms) == (False, 20, 1_500)
    assert (usual.params.full, usual.params.hot, usual.params.hot_ms) == (True, 0, 0)
    directory = RunDirectory.create(tmp_path / "runs", "q12", "aligned", asdict(chosen))
    assert spec_of(directory) == chosen
    _, out, _ = snapline("runs", "show", "last")
    assert "small" in out
    assert "1500ms" in out


@pytest.mark.parametrize(
    "command", [("run", "--resume"), ("runs", "show"), ("runs", "output"), ("runs", "rm")]
)
def test_a_run_of_another_version_is_left_as_it_is(snapline, tmp_path, command):
    directory = RunDirectory.create(tmp_path / "runs", "q12", "aligned", asdict(Spec("q12")))
    directory.write("run.json", {**directory.spec(), "version": 99})
    message = refused(snapline, tmp_path, *command, directory.name)
    assert "was written by another version of Snapline: its run.json has version 99" in message


def test_a_run_whose_flow_file_is_broken_now_is_not_resumed_and_keeps_its_result(
    snapline, tmp_path
):
    (tmp_path / "mine.py").write_text("flow = 1 / 0\n")
    spec = asdict(Spec("mine.py:flow"))
    directory = RunDirectory.create(tmp_path / "runs", "mine", "aligned", spec)
    directory.write("result.json", {"kept": "yes"})
    with pytest.raises(UsageError, match="ZeroDivisionError"):
        run_module.resume("last", runs=tmp_path / "runs")
    assert "ZeroDivisionError" in refused(snapline, tmp_path, "run", "--resume", "last")
    assert directory.result() == {"kept": "yes"}


@pytest.mark.parametrize("damaged", ["run.json", "result.json"])
def test_a_run_that_cannot_be_read_is_one_message(snapline, tmp_path, damaged):
    directory = RunDirectory.create(tmp_path / "runs", "q12", "aligned", asdict(Spec("q12")))
    (directory.path / damaged).write_text("{")
    assert damaged in refused(snapline, tmp_path, "runs", "show", directory.name)


def test_a_dataflow_that_fails_is_the_users_own_mistake_and_told_in_one_message(
    snapline, monkeypatch
):
    def fail(*args, **options):
        raise FlowFailed("operator 'map' failed: KeyError: 'x'", "map", "flow.py", "KeyError: 'x'")

    monkeypatch.setattr(run_module, "carry_out", fail)
    code, out, err = snapline("run", "q12")
    assert (code, out) == (2, "")
    assert err.splitlines()[1:] == ["the dataflow failed: operator 'map' failed: KeyError: 'x'"]


def test_how_often_is_too_often_is_passed_on(snapline, monkeypatch):
    asked = []

    def fail(prepared, timeouts, watcher):
        asked.append(timeouts.restarts)
        raise UsageError("enough")

    monkeypatch.setattr(run_module, "carry_out", fail)
    snapline("run", "q12")
    snapline("run", "q12", "--restart-failures", "3", "--restart-window", "5s")
    assert asked == [RestartPolicy(10, 60.0), RestartPolicy(3, 5.0)]


def test_pages_of_a_spark_that_is_not_ours_are_not_ours_to_keep():
    prepared = PreparedRun(Spec("q12"), None, (), None, spark=object(), runs=Path("runs"))
    with pytest.raises(UsageError, match=r"^--ui is for a Spark that Snapline starts itself"):
        _with_pages(prepared, True)
    assert _with_pages(prepared, False) is prepared
