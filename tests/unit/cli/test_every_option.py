"""Every option of every command with values that it cannot have: exit code 2, its name, nothing begun."""

import logging
import sys
from typing import Any

import pytest
import typer.main

from snapline.cli import app as cli
from snapline.cli import explore as cli_explore
from snapline.cli import simulate as cli_simulate
from snapline.cli.app import main
from snapline.runs import run as run_module
from snapline.spark import generate

WHOLE = ["x", "1.5", "", "-1", "99999999999999999999999"]
SPANS = ["soon", "", "5", "-1s", "9999999h", "1.00001ms"]
NAMES = ["alinged", ""]
WRONG: dict[str, dict[str, list[str]]] = {
    "run q12": {
        "--system": ["x"],
        "--protocol": NAMES,
        "--guarantee": NAMES,
        "--slots": ["0", *WHOLE],
        "--rate": ["0", "fast", "1e99", *WHOLE],
        "--records": ["0", *WHOLE],
        "--duration": ["0s", *SPANS],
        "--interval": ["0s", *SPANS],
        "--faults": ["x", "kill slot=900 at=1s", "@nowhere"],
        "--chaos": ["x", ""],
        "--spares": WHOLE,
        "--seed": WHOLE,
        "--size": NAMES,
        "--hot": ["101", *WHOLE],
        "--hot-moves": SPANS,
        "--set": ["x", "", "a=", "a=1"],
        "--option": [
            "x",
            "",
            "batch=",
            "a=1",
            "batch=0",
            "fused=perhaps",
            "line_max_lag=3",
            "interval.bids=0s",
            "interval.bids=1s",
        ],
        "--pool": ["x", "", "model=", "model=0", "model=x", "model=1"],
        "--save": ["x", "", "count=", "count=0s", "count=soon", "model=1s", "count=1s"],
        "--inputs": ["x", "", "count=", "count=wait:0", "count=keep:1", "model=drop", "count=drop"],
        "--input": ["nowhere"],
        "--publish-lag": ["16", *WHOLE],
        "--retain": ["0", "1s", "forever"],
        "--warm-up": ["21s", "forever", *SPANS],
        "--listen": ["", "203.0.113.7", "0.0.0.0"],
        "--heartbeat": ["0s", *SPANS],
        "--silence": ["0s", *SPANS],
        "--restart-failures": ["0", *WHOLE],
        "--restart-window": ["0s", *SPANS],
        "--resume": ["last"],
        "--fork": ["last"],
        "--line": ["0", *WHOLE, "3"],
        "--runs": ["file", "file/below"],
        "--report": ["nowhere/x.html", ".", "s3://x/y"],
    },
    "simulate": {
        "--protocol": NAMES[:1],
        "--workload": NAMES[:1],
        "--seeds": ["0", *WHOLE],
        "--seed": WHOLE,
        "--slots": ["0", *WHOLE],
        "--records": ["0", *WHOLE],
        "--size": NAMES[:1],
        "--hot": ["101", *WHOLE],
        "--hot-moves": SPANS[:1] + SPANS[2:],
        "--set": ["x", "", "a=", "a=1"],
        "--option": ["x", "", "batch=", "a=1", "batch=0", "fused=perhaps", "interval.a=0s"],
        "--save": ["x", "", "count=", "count=0s", "count=soon", "model=1s"],
        "--pool": ["x", "", "count=", "count=0", "count=-1", "count=soon", "model=1"],
        "--inputs": ["x", "", "count=", "count=wait:0", "count=keep:1", "model=drop"],
        "--guarantee": NAMES,
        "--faults": ["x", "kill slot=900 at=1s", "@nowhere"],
        "--diagram": ["nowhere/x.svg"],
        "--repeat": ["nowhere"],
        "--jobs": ["0", *WHOLE],
        "--profile": ["nowhere", "s3://x/y"],
        "--rate": ["0", "fast", *WHOLE],
        "--duration": ["0s", "forever", *SPANS],
        "--interval": ["0s", *SPANS],
        "--cores": ["0", *WHOLE],
        "--dilute": ["0", *WHOLE],
    },
    "calibrate": {"--to": ["nowhere/x.json", "s3://x/y", "."], "--workload": NAMES},
    "explore": {
        "--protocol": NAMES[:1],
        "--graph": NAMES[:1],
        "--records": ["0", "5", *WHOLE],
        "--budget": SPANS[:4],
        "--repeat": ["nowhere"],
    },
    "generate q12 --to new": {
        "--to": ["file", "s3://x/y"],
        "--format": NAMES,
        "--rate": ["0", *WHOLE],
        "--duration": ["0s", *SPANS],
        "--seed": WHOLE,
        "--size": NAMES,
        "--hot": ["101", *WHOLE],
        "--hot-moves": SPANS,
        "--set": ["x", "", "a=", "a=1"],
        "--slots": ["0", *WHOLE],
    },
    "validate": {
        "--input": ["nowhere"],
        "--output": ["nowhere"],
        "--late": ["nowhere"],
        "--window": ["0s", *SPANS],
        "--promise": ["nothing", *NAMES],
        "--engine": NAMES,
        "--junit": ["nowhere/x.xml"],
        "--flow": [],
        "--runs": [],
        "--until": ["x", ""],
        "--lateness": SPANS,
        "--max-late": ["x", "-1", "1.5", "101%", "nan"],
        "--id": [],
        "--time": [],
        "--resource": [],
        "--column": ["x", "", "a=b=c", "=x", "nothing=x"],
    },
    "runs list": {
        "--older": [],
        "--sink": [],
        "--limit": ["x", "-1", "1.5"],
        "--format": [],
        "--to": [],
        "--runs": ["file"],
    },
    "checkpoints last": {"--runs": ["file"]},
    "capacity q12": {
        "--system": NAMES,
        "--protocol": NAMES,
        "--slots": ["0", *WHOLE],
        "--interval": ["0s", *SPANS],
        "--size": NAMES,
        "--hot": ["101", *WHOLE],
        "--set": ["x", "", "a=", "a=1"],
        "--option": ["x", "", "batch=", "a=1", "batch=0", "fused=perhaps", "line_max_lag=3"],
        "--runs": ["file", "file/below"],
    },
    "sweep price.toml": {
        "--to": ["s3://x/y"],
        "--figure": ["fig7"],
        "--profile": ["nowhere", "s3://x/y"],
    },
    "advise protocol q12": {
        "--rto": ["0s", *SPANS],
        "--p99": ["0s", *SPANS],
        "--mtbf": ["0s", *SPANS],
        "--latency": NAMES,
        "--rate": ["0", "fast", *WHOLE],
        "--slots": ["0", *WHOLE],
        "--cores": ["0", *WHOLE],
        "--protocol": NAMES,
        "--profile": ["nowhere", "s3://x/y"],
    },
    "findings": {
        "--results": ["file", "s3://x/y"],
        "--to": ["nowhere/x.md", ".", "s3://x/y"],
    },
    "compare a b": {
        "--margin": ["x", "", "0", "-5%", "nan", "1e9"],
        "--threshold": ["x", "", "0", "-5%", "nan", "1e9"],
        "--runs": ["file"],
    },
    "report last": {
        "--against": [],
        "--to": ["nowhere/x.html", ".", "s3://x/y"],
        "--runs": ["file"],
    },
    "advise protect q12": {
        "--budget": ["x", "", "0", "-3%", "101%", "nan"],
        "--bytes": ["x", "", "0B", "-3kB", "3 apples"],
        "--kills": ["5", *WHOLE],
        "--away": ["0ms", "0s..1s", "2s..1s", "..", *SPANS],
        "--interval": ["0s", *SPANS],
        "--answer": ["x", "", "nobody.count by bidder", "results by bidder"],
        "--slots": ["0", *WHOLE],
        "--rate": ["0", "max", *WHOLE],
        "--duration": ["0s", "forever", *SPANS],
        "--size": NAMES,
        "--seed": WHOLE,
        "--set": ["x", "", "a=", "a=1"],
        "--profile": ["nowhere", "."],
    },
    "doctor": {"--runs": []},
    "list": {},
}
"""By command, with what makes it sound; where there are no wrong values, other words decide."""

COMPANIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "validate": {
        "--input": ("--output", ".", "--window", "1s"),
        "--output": ("--input", ".", "--window", "1s"),
        "--late": ("--input", ".", "--output", ".", "--window", "1s"),
        "--window": ("--input", ".", "--output", "."),
        "--promise": ("--input", ".", "--output", ".", "--window", "1s"),
        "--engine": ("--input", ".", "--output", ".", "--window", "1s"),
        **dict.fromkeys(
            ("--until", "--lateness", "--max-late", "--id", "--time", "--resource", "--column"),
            ("--input", ".", "--output", ".", "--window", "1s"),
        ),
    },
    "simulate": {"--diagram": ("--protocol", "aligned", "--seed", "1")},
    "run q12": {"--hot-moves": ("--hot", "20")},
    "generate q12 --to new": {"--hot-moves": ("--hot", "20")},
}
SAID_BY_VALUE = {
    "--faults",
    "--chaos",
    "--set",
    "--input",
    "--output",
    "--late",
    "--resume",
    "--fork",
} | {
    *("--option", "--pool", "--save", "--inputs", "--repeat", "--diagram", "--system", "--to"),
    *("--junit", "--profile"),
}
"""Options whose message shows the text or the file that is wrong."""

PLACES = [(command, option) for command, options in WRONG.items() for option in options]


GROUP: Any = typer.main.get_command(cli.app)
COMMANDS = GROUP.commands


def options_of(command):
    """The options of a command that take a value."""
    known = GROUP
    for word in command.split():
        known = getattr(known, "commands", {}).get(word, known)
    found = known.params
    valued = [
        p
        for p in found
        if p.param_type_name == "option" and not getattr(p, "is_flag", False) and not p.count
    ]
    return {p.opts[0] for p in valued if p.opts[0] != "--help"}


@pytest.mark.parametrize("command", WRONG)
def test_no_option_is_forgotten(command):
    assert set(WRONG[command]) == options_of(command)
    assert {name.split()[0] for name in WRONG} == set(COMMANDS)


@pytest.mark.parametrize(("command", "option"), PLACES)
def test_what_an_option_cannot_be_is_exit_code_2_and_nothing_begins(
    command, option, monkeypatch, capsys, tmp_path
):
    for module in (run_module, generate):
        monkeypatch.setattr(module, "own_session", lambda *_: pytest.fail("Spark was started"))
    monkeypatch.setattr(cli_simulate, "run_sweep", lambda *_: pytest.fail("it has begun"))
    monkeypatch.setattr(cli_explore, "Search", lambda *_: pytest.fail("it has begun"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    for value in WRONG[command][option]:
        others = COMPANIONS.get(command, {}).get(option, ())
        monkeypatch.setattr(sys, "argv", ["snapline", *command.split(), *others, option, value])
        with pytest.raises(SystemExit) as left:
            main()
        told = capsys.readouterr()
        assert (left.value.code, told.out) == (2, ""), (value, told.err)
        assert "Traceback" not in told.err
        assert "_ms" not in told.err, value
        assert option in told.err or option in SAID_BY_VALUE, (value, told.err)
        assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("validate --input s3://b/in --output out --window 1s", "--input s3://b/in: only local"),
        (
            "validate --input in --output s3a://b/out --window 1s",
            "--output s3a://b/out: only local",
        ),
        ("validate last --runs hdfs://h/runs", "--runs hdfs://h/runs: only local or mounted paths"),
        ("validate last --junit .", "--junit . is a directory: name a file"),
        ("validate last --runs file.txt", "--runs file.txt is a file: name a directory"),
        ("generate q12 --to gs://b/x", "--to gs://b/x: only local or mounted paths so far"),
        ("generate q12 --to file://host/x", "--to file://host/x: only local or mounted paths"),
        ("run q12 --input s3://b/in", "--input s3://b/in: only local or mounted paths so far"),
        ("run q12 --input file.txt", "--input file.txt is a file: name a directory"),
        ("run q12 --runs file.txt", "--runs file.txt is a file: name a directory"),
        ("runs --runs s3://b/runs", "--runs s3://b/runs: only local or mounted paths so far"),
        ("runs output last --to s3://b/x.csv", "--to s3://b/x.csv: only local or mounted paths"),
        ("simulate --seed 1 --diagram .", "--diagram . is a directory: name a file"),
        ("simulate --repeat https://h/f.json", "--repeat https://h/f.json: only local or mounted"),
        ("explore --repeat .", "--repeat . is a directory: name a file"),
        ("doctor --runs file.txt", "--runs file.txt is a file: name a directory"),
    ],
)
def test_a_path_is_local_and_of_the_kind_that_is_asked_for(
    arguments, said, monkeypatch, capsys, tmp_path
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.txt").write_text("x")
    monkeypatch.setattr(sys, "argv", ["snapline", *arguments.split()])
    with pytest.raises(SystemExit) as left:
        main()
    told = capsys.readouterr()
    assert (left.value.code, told.out) == (2, "")
    assert told.err.startswith(f"bad input: {said}"), told.err


def test_version_stands_before_the_command_and_verbose_before_or_behind_it(
    monkeypatch, capsys, tmp_path
):
    def told(*arguments):
        monkeypatch.setattr(sys, "argv", ["snapline", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        logging.getLogger("snapline.spark.java").info("Java 21 of \x1b[31mPATH")
        return left.value.code, *capsys.readouterr()

    code, out, _ = told("--version")
    assert (code, out.startswith("snapline 0.")) == (0, True)
    quiet = told("runs", "--runs", str(tmp_path))
    assert "Java 21" not in quiet[2]
    for place in (0, 1, 3):
        arguments = ["runs", "--runs", str(tmp_path)]
        arguments.insert(place, "-v")
        loud = told(*arguments)
        assert loud[2].count("snapline.spark.java: Java 21 of \\x1b[31mPATH") == 1
    assert logging.getLogger("snapline").level == logging.INFO
    told("-v", "runs", "--runs", str(tmp_path), "-v")
    assert logging.getLogger("snapline").level == logging.DEBUG
    monkeypatch.setenv("SNAPLINE_LOG", "1")
    assert "Java 21" in told("runs", "--runs", str(tmp_path))[2]
    monkeypatch.delenv("SNAPLINE_LOG")
    assert "Java 21" not in told("runs", "--runs", str(tmp_path))[2]
