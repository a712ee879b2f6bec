"""`snapline runs` over run directories that were made by hand: nothing here starts Spark."""

import json
import os
import sys

import numpy as np
import pytest
from pyarrow import parquet

from snapline.batch import Batch, Words
from snapline.cli import runs as cli_runs
from snapline.cli.app import main
from snapline.ids import TaskId
from snapline.rundir import directory as rundir
from snapline.rundir.directory import RunDirectory
from snapline.storage.api import Extent, Life


@pytest.fixture
def snapline(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["snapline", "runs", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        told = capsys.readouterr()
        return left.value.code, told.out, told.err

    return run


def rows(start, stop):
    numbers = np.arange(start, stop)
    return Batch.of(
        n=numbers,
        word=Words((numbers % 2).astype(np.int32), ("a", "b")),
        ids=[[int(n)] for n in numbers],
        raw=[bytes([n]) for n in numbers],
    )


def write(directory, sink, count, published):
    """A sink task that wrote rows in batches of ten, of which some are public."""
    task = TaskId(f"{sink}/0")
    egress = directory.outlet.open(Life(task, 1, 1), 0)
    for start in range(0, count, 10):
        egress.append(rows(start, min(count, start + 10)))
    egress.sync()
    if published:
        directory.outlet.publish(1, {task: Extent(egress.file, 0, published)})


@pytest.fixture
def directory(tmp_path):
    spec = {"flow": "q12", "protocol": "aligned", "slots": 1, "rate": 2_000, "faults": "[x]"}
    return RunDirectory.create(tmp_path / "runs", "q12", "aligned", spec)


def test_output_is_what_is_public_and_on_demand_all_that_was_written(snapline, directory):
    write(directory, "out", 30, 25)
    code, out, err = snapline("output", "last", "--format", "json", "--limit", "100")
    found = [json.loads(line) for line in out.splitlines()]
    assert (code, [row["n"] for row in found], err) == (0, list(range(25)), "")
    assert found[3] == {"n": 3, "word": "b", "ids": [3], "raw": "03"}
    _, out, _ = snapline("output", "--json", "--limit", "100", "--uncommitted")
    assert len(out.splitlines()) == 30


def test_without_checkpoints_all_output_is_public(snapline, directory):
    directory.write("run.json", {**directory.spec(), "protocol": "none"})
    write(directory, "out", 12, 0)
    _, out, _ = snapline("output", "--json")
    assert len(out.splitlines()) == 12


def test_rows_beyond_the_limit_are_not_read_and_said_to_be_there(snapline, directory, monkeypatch):
    write(directory, "out", 100, 100)
    read = []
    made = cli_runs._rows
    monkeypatch.setattr(cli_runs, "_rows", lambda b: made(read.append(1) or x for x in b))
    code, out, err = snapline("output", "--limit", "7", "--format", "csv")
    assert code == 0
    assert out.splitlines() == ["n,word,ids,raw"] + [
        f"{n},{'ab'[n % 2]},[{n}],{n:02x}" for n in range(7)
    ]
    assert "the first 7 rows" in err
    assert len(read) == 1, "batches of ten rows that were read"
    _, out, _ = snapline("output", "--limit", "2")
    assert [line.split() for line in out.splitlines()] == [
        ["n", "word", "ids", "raw"],
        ["0", "a", "[0]", "00"],
        ["1", "b", "[1]", "01"],
    ]


def test_all_rows_go_into_a_file(snapline, directory, tmp_path, monkeypatch):
    monkeypatch.setattr(cli_runs, "GROUP_ROWS", 20)
    write(directory, "out", 50, 45)
    code, out, err = snapline("output", "--to", "all.parquet")
    assert (code, out) == (0, "")
    assert "45 rows of out written to all.parquet" in err
    table = parquet.read_table(tmp_path / "all.parquet")
    assert table.to_pydict() == rows(0, 45).to_pydict()
    assert parquet.ParquetFile(tmp_path / "all.parquet").num_row_groups == 3
    assert snapline("output", "--to", "all.csv")[0] == 0
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 46
    assert {p.name for p in tmp_path.iterdir()} == {"runs", "all.parquet", "all.csv"}


def test_what_cannot_be_shown_is_refused_with_a_word(snapline, directory, tmp_path):
    assert "has written no output" in snapline("output")[2]
    write(directory, "out", 5, 5)
    (tmp_path / "old.csv").touch()
    for arguments, word in (
        (["--format", "xml"], "--format takes table, csv, json, not 'xml'"),
        (["--to", "x.txt"], "ends in .parquet or .csv"),
        (["--to", "old.csv"], "old.csv exists"),
        (["--to", "no/where.csv"], "cannot write no/where.csv: No such file"),
        (["--to", "no/where.parquet"], "cannot write no/where.parquet: No such file"),
        (["--sink", "other"], "no sink 'other': there is out"),
    ):
        code, _, err = snapline("output", "last", *arguments)
        assert code == 2
        assert word in " ".join(err.split())
    write(directory, "late", 5, 0)
    code, _, err = snapline("output")
    assert (code, "say --sink late or out" in " ".join(err.split())) == (2, True)
    assert snapline("prune")[0] == 2


def test_a_sink_without_rows_is_said_to_have_none(snapline, directory):
    write(directory, "out", 0, 0)
    code, out, err = snapline("output")
    assert (code, out) == (0, "")
    assert "out has no rows" in err


def test_a_run_is_shown_to_people_and_to_programs(snapline, directory):
    assert "not finished" in snapline("show")[1]
    result = {
        "kept": "no",
        "because": "missing bid 0:1: lost",
        "problems": [
            {"kind": "missing", "record": f"bid 0:{n}", "because": "lost"} for n in (1, 2)
        ],
        "metrics": {
            "commits": 12,
            "restart_s": [1.25, 0.5],
            "kills": 0,
            "latency_ms": {"p50": 1.2, "p99": 40.0},
            "bytes": {"wire": 12_000, "log": 0},
        },
        "faults": [
            {"statement": "kill slot=1 at=8s", "struck": True, "at_ms": 8_012},
            {"statement": "kill slot=0 at=90s", "struck": False, "at_ms": None},
        ],
        "rows": {"out": 12_345},
        "run": "the digest of run.json",
    }
    spec = {**directory.spec(), "origin_s": 1_794_800_000.5, "interval_ms": 5_000}
    directory.write("run.json", spec)
    directory.write("result.json", result)
    code, out, _ = snapline("show", directory.name)
    assert code == 0
    assert "broken: missing bid 0:1: lost" in out
    assert "missing bid 0:2: lost" in out
    said = [" ".join(line.split()) for line in out.splitlines()]
    for line in (
        "flow q12",
        "rate 2,000 per second",
        "interval 5s",
        "input began 2026-11-16 03:33:20 UTC",
        "kill slot=1 at=8s struck at 8012 ms",
        "kill slot=0 at=90s never struck",
        "commits 12",
        "restart 1.25 s, 0.50 s",
        "latency p50 1.2 ms, p99 40 ms",
        "bytes wire 12.0 kB",
        "out 12,345",
    ):
        assert line in said, out
    assert not any(line.endswith(" ") for line in out.splitlines())
    document = json.loads(snapline("show", "last", "--json")[1])
    assert (document["version"], document["run"]) == (1, directory.name)
    assert (document["flow"], document["rows"]) == ("q12", {"out": 12_345})
    (listed,) = json.loads(snapline("--json")[1])["runs"]
    assert listed.pop("size_bytes") > 100
    assert listed.pop("written_s") > 1e9
    assert listed == document


@pytest.mark.parametrize(
    "wrong", [17, "x" * 100_000, [[1]], {"a": {"b": {"c": {}}}}, 10**400, float("inf"), None, True]
)
def test_a_run_whose_files_hold_other_types_is_shown_without_a_traceback(
    snapline, directory, wrong
):
    names = ("kept", "because", "problems", "guarantees", "metrics", "faults", "rows")
    sound = {"kept": "yes", "because": "it is right"}
    spec = directory.spec()
    for field in ("slots", "origin_s", "faults", "flow", "interval_ms"):
        directory.write("run.json", {**spec, field: wrong})
        for result in ({}, *({**sound, name: wrong} for name in names)):
            directory.write("result.json", result)
            code, out, err = snapline("show")
            assert (code, "Traceback" in out + err) == (0, False), err
            assert len(out) < 10_000
    assert snapline()[0] == 0


def test_a_file_of_absurd_size_or_depth_is_refused_in_one_message(snapline, directory, monkeypatch):
    monkeypatch.setattr(rundir, "JSON_CHARS_MAX", 1_000)
    (directory.path / "result.json").write_text(json.dumps({"kept": "yes", "because": "x" * 1_000}))
    code, _, err = snapline("show")
    assert (code, "result.json cannot be read: it is larger than any" in err) == (2, True)
    monkeypatch.setattr(rundir, "JSON_CHARS_MAX", 1 << 25)
    deep = "[" * 900 + "]" * 900
    (directory.path / "result.json").write_text(f'{{"kept": "yes", "because": {deep}}}')
    for arguments in (("show",), ("show", "--json")):
        code, _, err = snapline(*arguments)
        assert code in (0, 2), err
        assert "Traceback" not in err


def test_runs_are_listed_and_removed(snapline, directory):
    assert directory.name in snapline()[1]
    assert [run["flow"] for run in json.loads(snapline("--json")[1])["runs"]] == ["q12"]
    assert "removed" in snapline("rm", directory.name)[2]
    assert not directory.path.exists()
    assert "no runs yet" in snapline("list")[2]


@pytest.mark.parametrize("protocol", ["unknown", 3, None, ["aligned"]])
def test_output_of_a_run_whose_protocol_nobody_knows_is_bad_input(snapline, directory, protocol):
    write(directory, "out", 3, 3)
    directory.write("run.json", {**directory.spec(), "protocol": protocol})
    code, _, err = snapline("output")
    assert code == 2
    assert "protocol" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("spoil", ["pipe", "no json"])
def test_a_run_that_cannot_be_read_hides_no_other_and_keeps_nobody_waiting(
    snapline, directory, tmp_path, spoil
):
    other = RunDirectory.create(tmp_path / "runs", "q1", "aligned", directory.spec())
    if spoil == "pipe":
        (other.path / "store" / "decision").mkdir()
        os.mkfifo(other.path / "store" / "decision" / "00000001.obj")
    else:
        (other.path / "run.json").write_text("{")
    code, out, err = snapline("list", "--json")
    assert (code, [run["run"] for run in json.loads(out)["runs"]]) == (0, [directory.name])
    assert other.name in err
