"""What was written for the terminal by who made a run directory is shown, and does nothing."""

import io
import json
import os
import re
import sys
from dataclasses import asdict
from typing import Any

import pytest
from rich.table import Table
from rich.text import Text

from snapline.batch import Batch
from snapline.cli.app import main
from snapline.cli.terminal.console import (
    VisibleConsole,
    escape,
    escape_lines,
    messages,
    print_csv,
    print_json,
    results,
    visible,
)
from snapline.ids import Epoch, TaskId
from snapline.journal.entry import COORDINATOR, Happened
from snapline.journal.fault_happenings import ProcessKilled
from snapline.journal.happenings import JobFinished, JobStopped
from snapline.rundir.directory import RunDirectory
from snapline.rundir.journal_file import JournalFile
from snapline.rundir.results import VERSION
from snapline.rundir.spec import Spec
from snapline.sim.case import Case
from snapline.storage.api import Extent, Life

MARKUP = "[red]x[/red][link=http://a]y[/link][/][nothing"
NAME = f"\x1b[31m\x1b]0;t\x07\x9b2J\x7f\u202e\u2066\x08\t\ud800{MARKUP}"
POISON = f"{NAME}\r\nkept: yes\n"
MOVES = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def poisoned(value):
    """A JSON value with every string in it poisoned, and the names of its fields as they are."""
    match value:
        case str():
            return value + POISON
        case dict():
            return {name: poisoned(each) for name, each in value.items()}
        case list() | tuple():
            return [poisoned(each) for each in value]
        case _:
            return value


RESULT = {
    "kept": "no",
    "because": "a row is missing",
    "guarantees": {"exactly-once": "no"},
    "problems": [{"kind": "lost", "record": "r", "because": "b"}] * 3,
    "metrics": {"sentence": "s", "events": ["e"]},
    "rows": {POISON: 3},
}


@pytest.fixture
def run(tmp_path):
    """A run that is over, with all that it says poisoned but for the fields that are named."""

    def make(*sound, **given):
        fields = asdict(Spec("q12", slots=1, duration_ms=1_000, origin_s=0.0, **given))
        spec = {n: v if n in sound else poisoned(v) for n, v in fields.items()}
        more = {} if sound else {POISON: POISON}
        directory = RunDirectory.create(tmp_path / "runs", "x", "y", {**spec, **more})
        directory = RunDirectory(directory.path.rename(directory.path.with_name(_file(NAME))))
        task = TaskId(f"{_file(NAME)}/0")
        egress: Any = directory.outlet.open(Life(task, 1, 1), 0)
        egress.append(Batch.of(**{_file(POISON): [_file(POISON)], "raw": [b"\x1b"]}))
        egress.sync()
        directory.outlet.publish(1, {task: Extent(egress.file, 0, 1)})
        egress.close()
        journal = JournalFile(directory.path / "journal" / "driver-1.jsonl")
        for what in (ProcessKilled(POISON), JobStopped(POISON), JobFinished()):
            journal.add(Happened(0, COORDINATOR, Epoch(1), what))
        journal.close()
        directory.write("result.json", {**poisoned(RESULT), "kept": "no", "version": VERSION})
        return directory

    return make


def _file(text):
    """Text as files and columns hold it: whole characters, and no slash in a name of a file."""
    return text.replace("\ud800", "").replace("/", "|")


@pytest.fixture
def snapline(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["snapline", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        told = capsys.readouterr()
        return left.value.code, told.out, told.err

    return call


COMMANDS = [
    ("runs",),
    ("runs", "show", "last"),
    ("runs", "output", "last"),
    ("runs", "output", "last", "--format", "csv"),
    ("runs", "output", "last", "--sink", POISON),
    ("runs", "output", "last", "--to", _file(NAME)),
    ("runs", "show", POISON),
    ("runs", POISON),
    ("runs", "rm", POISON),
    ("validate", "last"),
    ("validate", "last", "--reference"),
    ("validate", "last", "--follow"),
    ("run", "--resume", "last"),
    ("run", POISON),
    ("generate", POISON, "--to", "there"),
    ("simulate", "--repeat", "poison.json"),
]
SOUND = [(), ("protocol", "system"), ("protocol", "system", "flow", "guarantee", "size", "faults")]


@pytest.mark.parametrize(
    "sound", SOUND, ids=["nothing is sound", "its protocol is", "it is judged"]
)
def test_no_command_lets_what_a_run_says_move_the_cursor(snapline, run, tmp_path, sound):
    run(*sound)
    (tmp_path / "poison.json").write_text(
        json.dumps({"case": poisoned(json.loads(Case("none", "counting", 1).to_json()))})
    )
    for command in COMMANDS:
        if command[0] == "run" and "flow" in sound:
            continue  # it would run
        _, out, err = snapline(*command)
        assert out + err, command
        assert not MOVES.findall(out + err), command
        assert not re.search(r"^kept: yes", out + err, re.M), command


def test_markup_is_shown_as_it_was_written(snapline, run):
    run("protocol", "system")
    for command in (("runs", "show", "last"), ("runs", "show", POISON)):
        _, out, err = snapline(*command)
        assert MARKUP in out + err


def test_json_is_valid_and_holds_what_was_there(snapline, run):
    directory = run("protocol", "system")
    _, out, _ = snapline("runs", "show", "last", "--json")
    assert json.loads(out)["because"] == RESULT["because"] + POISON
    assert not MOVES.findall(out)
    _, out, _ = snapline("runs", "output", "last", "--json")
    assert json.loads(out) == {_file(POISON): _file(POISON), "raw": "1b"}
    assert not MOVES.findall(out)
    _, out, _ = snapline("runs", "--json")
    assert json.loads(out)["runs"][0]["run"] == directory.name


def test_a_bug_is_told_without_moving_the_cursor(snapline, monkeypatch):
    def fail(*_arguments, **_options):
        raise RuntimeError(POISON)

    monkeypatch.setattr("snapline.cli.runs.manage_runs", fail)
    code, out, err = snapline("runs")
    assert (code, out) == (3, "")
    assert "RuntimeError" in err
    assert not MOVES.findall(err)


def test_a_console_on_a_terminal_has_its_own_control_codes_and_no_others():
    file = io.StringIO()
    console = VisibleConsole(file=file, force_terminal=True, color_system="standard", width=400)
    console.print("[red]sound[/]", Text(POISON), POISON, markup=False)
    console.print(f"[bold]{escape(POISON)}[/]")
    with console.status("waiting"):
        pass
    rest = re.sub(r"\x1b\[[0-9;?]*[mlhAK]|\r", "", file.getvalue())
    assert not MOVES.findall(rest)
    assert r"\x1b[31m\x1b]0;t\x07\x9b2J\x7f\u202e" in rest


@pytest.mark.parametrize(
    ("text", "one_line", "lines"),
    [
        ("plain [x] (1)", r"plain \[x] (1)", r"plain \[x] (1)"),
        ("a\nb\n", r"a\nb\n", "a\n  b"),
        ("\x1b\x9b", r"\x1b\x9b", r"\x1b\x9b"),
        ("grüße 日本", "grüße 日本", "grüße 日本"),
    ],
)
def test_values_become_parts_of_a_sentence(text, one_line, lines):
    assert (escape(text), escape_lines(text)) == (one_line, lines)
    assert visible(visible(text)) == visible(text)


@pytest.mark.parametrize(
    "parts", [("[red", "]x"), ("[", "b]x"), ("\\[link=a", "]x"), ("\\", "[b]x")]
)
def test_two_values_do_not_make_markup_together(parts):
    joined = "".join(map(escape, parts))
    assert Text.from_markup(joined).spans == []
    assert Text.from_markup(joined).plain.endswith("]x")


def test_in_a_pipe_lines_keep_their_order_and_end_without_blanks(tmp_path, monkeypatch):
    """Both streams are buffered as they are in a pipe: who does not flush is overtaken."""
    path = tmp_path / "pipe"
    with path.open("a") as out, path.open("a") as err:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        sys.stdout.write("first\n")
        messages().print("second")
        print_json({"n": 3}, indent=None)
        messages().print("fourth")
        print_csv([("fifth",)])
        sys.stderr.write("sixth\n")
        table = Table("name", "value", box=None)
        table.add_row("a", "b")
        table.add_row("long name", "long value")
        results().print(table)
        found = path.read_text().splitlines()
        monkeypatch.undo()
    assert found[:6] == ["first", "second", '{"n": 3}', "fourth", "fifth", "sixth"]
    assert [line.split() for line in found[6:]][:2] == [["name", "value"], ["a", "b"]]
    assert all(line == line.rstrip() for line in found)


def test_who_stops_reading_gets_no_traceback(monkeypatch):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        with pytest.raises(SystemExit) as left:
            results().print("nobody hears this")
        monkeypatch.undo()
    assert left.value.code == 141
