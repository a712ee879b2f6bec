"""`snapline validate RUN --follow`: what is said while a run goes on, and how it ends."""

import json
import os
import sys
import time
from dataclasses import asdict
from types import SimpleNamespace

import pytest
from rich.console import Console

from snapline.cli import follow as cli_follow
from snapline.cli.app import main
from snapline.rundir.directory import RunDirectory
from snapline.rundir.spec import Spec
from written_run import WrittenRun


@pytest.fixture
def clock(monkeypatch):
    now = [1_000_000_000_000]
    monkeypatch.setattr(time, "time_ns", lambda: now[0] * 1_000_000)
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    return now


@pytest.fixture
def run(tmp_path, clock):
    return WrittenRun(tmp_path / "runs", clock, seconds=12)


@pytest.fixture
def snapline(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)

    def call(*arguments, go_on=()):
        """Follow a run that goes on, a step every second."""
        steps, now_s = iter(go_on), [0.0]

        def sleep(seconds):
            now_s[0] += seconds
            next(steps)()

        # Not the clock of the process: threads that others have left behind sleep, too.
        clock = SimpleNamespace(sleep=sleep, monotonic=lambda: now_s[0])
        monkeypatch.setattr(cli_follow, "time", clock)
        monkeypatch.setattr(sys, "argv", ["snapline", "validate", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        told = capsys.readouterr()
        return left.value.code, told.out, told.err

    return call


def course(run, lost=None):
    """A window is published every second; then the run is over."""

    def publish(number, window):
        run.write_window(window, (1,) if number == lost else (0, 1))
        run.publish()

    for number, window in enumerate(run.windows):
        yield lambda number=number, window=window: publish(number, window)
    yield run.end


def test_a_run_is_followed_until_it_is_over(snapline, run):
    code, out, err = snapline("last", "--follow", go_on=course(run))
    assert code == 0
    assert f"reliability 100 % of {len(run.events):,} events" in out
    lines = err.splitlines()
    assert lines[0].startswith("nothing to judge yet; holding 0 events, 0 KB of at most 0")
    assert len(lines) == 1 + len(run.windows) // 5
    through = [float(line.split()[2]) for line in lines[1:]]
    assert through == sorted(set(through))
    assert all(", reliability 100 %; holding " in line for line in lines[1:])


def test_what_is_wrong_is_said_before_the_run_is_over(snapline, run):
    code, out, err = snapline("last", "--follow", "--json", go_on=course(run, lost=2))
    assert code == 1
    lines = err.splitlines()
    (found,) = (number for number, line in enumerate(lines) if line.startswith("missing: GET"))
    assert found < len(lines) - 2
    assert "reliability 100 %" not in lines[-1]
    document = json.loads(out)
    assert (document["kept"], document["guarantees"]["at-most-once"]) == ("no", "yes")
    assert "is lost: resource" in document["because"]
    assert "kill slot=0 at=1s" in document["because"]
    assert snapline("last", "--follow", "--promise", "at-most-once")[0] == 0
    # The same as from the whole, later.
    assert json.loads(snapline("last", "--json")[1])["causes"] == document["causes"]


def test_a_run_that_is_over_is_judged_at_once(snapline, run):
    for step in course(run):
        step()
    code, out, _ = snapline("last", "--follow", "--promise", "at-least-once")
    assert (code, "kept" in out) == (0, True)


def test_a_run_that_ended_early_is_unknown(snapline, run):
    for window in run.windows[:9]:
        run.write_window(window)
    run.publish()
    run.end("unknown", "interrupted", problem="interrupted")
    code, out, _ = snapline("last", "--follow")
    assert (code, "unknown: interrupted" in out) == (3, True)


def test_what_comes_after_its_window_was_judged_makes_it_judge_the_whole(snapline, run):
    def too_late():
        run.write("counts", 0, run.rows(run.windows[2], 0))
        run.publish()

    steps = [*course(run, lost=2)]
    code, out, err = snapline("last", "--follow", go_on=[*steps[:-1], too_late, steps[-1]])
    assert "missing: GET" in err
    assert err.splitlines()[-1] == (
        "output came for a window that was judged already: the whole run is judged again"
    )
    assert (code, f"reliability 100 % of {len(run.events):,} events" in out) == (0, True)


def test_it_says_so_when_nothing_comes(snapline, run):
    steps = [*course(run)]
    waits = [lambda: None] * 40
    _, _, err = snapline("last", "--follow", go_on=[*steps[:9], *waits, *steps[9:]])
    quiet = [line.rpartition("; ")[2] for line in err.splitlines() if "nothing new" in line]
    assert quiet == ["nothing new for 15 s", "nothing new for 30 s"]


def test_it_can_be_interrupted(snapline, run):
    def interrupt():
        raise KeyboardInterrupt

    assert snapline("last", "--follow", go_on=[interrupt])[0] == 130


def test_on_a_terminal_one_line_is_kept_up_to_date(snapline, run, monkeypatch):
    shown = []
    console = Console(stderr=True, force_terminal=True, highlight=False, width=200)
    monkeypatch.setattr(cli_follow, "messages", lambda: console)
    monkeypatch.setattr("rich.status.Status.update", lambda status, text: shown.append(text))
    code, _, err = snapline("last", "--follow", go_on=course(run, lost=2))
    assert code == 1
    assert len(shown) == 2 * len(run.windows) + 1  # every second, and every manifest
    assert len(set(shown)) > len(run.windows) // 2
    assert err.count("is lost: resource") == 1


@pytest.mark.parametrize(
    ("flow", "given", "arguments", "told"),
    [
        ("q1", {}, (), "q1 cannot be followed: its outputs do not name the events behind them"),
        ("mine", {}, (), "mine cannot be followed"),
        ("sst", {"system": "structured-streaming"}, (), "only Snapline's own runs can be followed"),
        ("sst", {}, ("--uncommitted",), "--uncommitted is for a run that is over"),
        ("sst", {}, ("--reference",), "--reference is for a run that is over"),
        ("sst", {}, ("--engine", "spark"), "--engine is for --input and --output"),
        ("sst", {}, ("--input", "x"), "--input is for outputs of other systems"),
    ],
)
def test_what_cannot_be_followed_is_bad_input(snapline, tmp_path, flow, given, arguments, told):
    RunDirectory.create(tmp_path / "runs", "x", "aligned", asdict(Spec(flow, **given)))
    code, out, err = snapline("last", "--follow", *arguments)
    assert (code, out) == (2, "")
    assert told in err


def test_outputs_of_other_systems_cannot_be_followed(snapline):
    code, _, err = snapline("--input", "x", "--output", "y", "--window", "1s", "--follow")
    assert code == 2
    assert "--follow is for a RUN" in err
