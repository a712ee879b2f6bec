"""`snapline report` over directories that were made by hand: nothing here starts Spark."""

import json
import os
import re
import signal
import sys

import pytest

from snapline.cli.app import main
from snapline.cli.pages import live
from snapline.experiments.sweep_directory import SweepDirectory
from snapline.experiments.sweep_file import sweep_of
from snapline.rundir.directory import RunDirectory
from snapline.rundir.results import VERSION

SWEEP = """
turns = 6
[base]
flow = "q12"
[matrix]
protocol = ["none", "aligned"]
"""


@pytest.fixture
def snapline(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["snapline", "report", *arguments])
        try:
            main()
            code = 0
        except SystemExit as left:
            code = left.code or 0
        told = capsys.readouterr()
        return code, " ".join(told.out.split()), " ".join(told.err.split())

    return run


@pytest.fixture
def stored(tmp_path):
    def store(protocol, rates, kept="yes"):
        names = []
        for rate in rates:
            spec = {"flow": "q12", "protocol": protocol, "slots": 2}
            directory = RunDirectory.create(tmp_path / "runs", "q12", protocol, spec)
            metrics = {"rate": {"read": rate, "written": rate}, "restart_s": [0.5]}
            said = {"version": VERSION, "kept": kept, "because": "x", "metrics": metrics}
            directory.write("result.json", said)
            names.append(directory.name)
        return ",".join(names)

    return store


def texts(path):
    """A page without its markup."""
    return " ".join(re.sub(r"<[^>]+>", " ", path.read_text()).split())


def test_a_run_gets_a_page_that_is_called_after_it(snapline, stored, tmp_path):
    name = stored("aligned", [1_000])
    code, out, err = snapline("last")
    assert (code, err) == (0, "")
    assert out.startswith(f"page: {name}.html (")
    page = texts(tmp_path / f"{name}.html")
    assert "snapline run q12 --protocol aligned --slots 2" in page
    assert "Not all is known" in page  # it has no journal


def test_the_same_run_gives_the_same_bytes_and_an_old_page_is_replaced(snapline, stored, tmp_path):
    stored("aligned", [1_000])
    (tmp_path / "page.html").write_text("old")
    assert snapline("last", "--to", "page.html")[0] == 0
    first = (tmp_path / "page.html").read_bytes()
    assert snapline("last", "--to", "page.html")[0] == 0
    assert (tmp_path / "page.html").read_bytes() == first


def test_two_columns_of_runs_are_compared(snapline, stored, tmp_path):
    first = stored("aligned", [1_000, 1_010, 990, 1_005, 1_000, 1_020])
    second = stored("hmnr", [800, 805, 790, 803, 801, 810], kept="unknown")
    code, _, err = snapline(second, "--against", first, "--to", "b.html")
    assert (code, err) == (0, "")
    page = texts(tmp_path / "b.html")
    assert "records read 20.2 % slower" in page
    assert "6 pairs of runs; intervals of 96.9 %" in page
    columns = [f"{names.partition(',')[0]} and its repetitions" for names in (first, second)]
    assert f"setting {' '.join(columns)} protocol aligned hmnr" in page
    assert f"Each figure of {columns[1]} over that of {columns[0]}: right of 1 is more." in page
    assert "is not proved right" in page


def test_one_pair_claims_nothing(snapline, stored, tmp_path):
    code, _, _ = snapline(
        stored("hmnr", [800]), "--against", stored("aligned", [1_000]), "--to", "b.html"
    )
    assert code == 0
    assert "one pair of runs says nothing about chance" in texts(tmp_path / "b.html")


def measured(path, text, code="some"):
    """A sweep whose cells all have a result, as if other code had measured them."""
    import tomllib

    directory = SweepDirectory(path)
    sweep = sweep_of(tomllib.loads(text))
    with directory.claimed(text):
        for cell in sweep.cells:
            slow = 0.8 if cell.column.varied["protocol"] == "aligned" else 1.0
            result = {
                "turn": cell.turn,
                "again": cell.column.again,
                "varied": cell.column.varied,
                "run": "q12-x",
                "kept": "yes",
                "because": "it is right",
                "elapsed_s": 3.5,
                "metrics": {"rate": {"read": 1_000 * slow + cell.turn, "written": 1}},
                "spec": cell.spec.said(),
                "environment": {"code": code},
            }
            directory.write(cell.key(code), json.loads(json.dumps(result)))


def test_the_columns_of_a_sweep_are_compared_whatever_code_measured_them(snapline, tmp_path):
    measured(tmp_path / "price", SWEEP)
    code, out, err = snapline("price")
    assert (code, err) == (0, "")
    assert out.startswith("page: price.html (")
    page = texts(tmp_path / "price.html")
    assert "protocol=aligned against protocol=none" in page
    assert "% slower" in page


def test_a_sweep_file_that_is_none_is_named_with_what_is_wrong(snapline, tmp_path):
    (tmp_path / "s" / "cells").mkdir(parents=True)
    for content in (b"x =\n", b"x = '\xff'\n"):
        (tmp_path / "s" / "sweep.toml").write_bytes(content)
        code, out, err = snapline("s")
        assert (code, out) == (2, "")
        assert "s/sweep.toml is no TOML file" in err
        assert "Traceback" not in err


DAMAGED = [{}, {"turn": 1}, {"environment": []}, {"turn": "1", "metrics": None}]


@pytest.mark.parametrize("said", DAMAGED, ids=str)
def test_a_damaged_result_of_a_sweep_counts_as_none(snapline, tmp_path, said):
    measured(tmp_path / "price", SWEEP)
    snapline("price", "--to", "whole.html")
    cell = tmp_path / "price" / "cells" / "abc.json"
    cell.write_text(json.dumps({"version": 1, "key": "abc", **said}))
    code, _, err = snapline("price")
    assert (code, err) == (0, "")
    assert (tmp_path / "price.html").read_bytes() == (tmp_path / "whole.html").read_bytes()
    columns = "price:protocol=none", "--against", "price:protocol=aligned"
    assert snapline(*columns, "--to", "both.html")[0] == 0


def test_a_figure_that_is_no_number_has_its_row(snapline, stored, tmp_path):
    name = stored("aligned", [1_000])
    said = {"version": VERSION, "kept": "yes", "because": "x"}
    metrics = {"x": float("nan"), "y": float("inf"), "z": 10**400}
    (tmp_path / "runs" / name / "result.json").write_text(json.dumps({**said, "metrics": metrics}))
    code, _, err = snapline("last", "--to", "page.html")
    assert (code, err) == (0, "")
    assert "x nan y inf z 10,000,000," in texts(tmp_path / "page.html")


def test_a_name_that_is_no_text_is_shown_with_escapes(snapline, tmp_path):
    spec = {"flow": "caf\udce9.py:flow", "protocol": "aligned", "slots": 2}
    directory = RunDirectory.create(tmp_path / "runs", "flow", "aligned", spec)
    code, _, err = snapline(directory.name, "--to", "page.html")
    assert (code, err) == (0, "")
    assert r"caf\udce9.py:flow" in texts(tmp_path / "page.html")


def test_the_sweep_of_a_paper_gets_its_scoreboard(snapline, tmp_path):
    paper = """
[paper]
title = "On speed"
authors = "Somebody"
year = 2024
settings = "a large machine"
[base]
flow = "q12"
[form.load]
turns = 6
[form.load.matrix]
protocol = ["none", "aligned"]
[metric.speed]
path = "rate.read"
[[figure]]
id = "fig1"
title = "speed"
varies = "protocol"
finding = "aligned is slower"
values = { aligned = 0.9 }
quick = "load"
claims = ["speed[aligned] < 0.9 * speed[none]", "speed[none] <= 5000"]
"""
    form = """
turns = 6
[base]
flow = "q12"
[matrix]
protocol = ["none", "aligned"]
"""
    measured(tmp_path / "own", form)
    (tmp_path / "own" / "sweep.toml").write_text(paper)
    assert snapline("own")[0] == 0
    page = texts(tmp_path / "own.html")
    assert "✓ holds" in page
    assert "speed[aligned] / speed[none]" in page
    assert "aligned is slower" in page


@pytest.fixture
def regular_ctrl_c():
    """SIGINT as a terminal gives it to a program, however these tests were started."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_is_the_regular_end_of_a_live_page(snapline, stored, monkeypatch, regular_ctrl_c):
    stored("aligned", [1_000])
    monkeypatch.setattr(os, "nice", lambda more: 0)
    monkeypatch.setattr(live, "open_page", lambda url: signal.raise_signal(signal.SIGINT))
    code, out, err = snapline("last", "--live", "--open")
    assert (code, err) == (0, "it is for this machine only, until Ctrl-C")
    assert out.startswith("live page: http://127.0.0.1:")


def test_sigterm_still_interrupts_a_live_page(snapline, stored, monkeypatch, regular_ctrl_c):
    stored("aligned", [1_000])
    monkeypatch.setattr(os, "nice", lambda more: 0)
    monkeypatch.setattr(live, "open_page", lambda url: signal.raise_signal(signal.SIGTERM))
    code, _, err = snapline("last", "--live", "--open")
    assert code == 143
    assert "interrupted" in err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["nothing"], "there is no run 'nothing' in runs"),
        (["last"], "there are no runs in runs"),
        (["a", "b", "--against", "c"], "a page of their own: name one"),
        (["a", "--against", "c"], "there is no run"),
    ],
)
def test_what_cannot_be_shown_is_said_in_one_sentence(snapline, given, said):
    code, out, err = snapline(*given)
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err
