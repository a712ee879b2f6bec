"""`snapline compare` over run directories that were made by hand: nothing here starts Spark."""

import json
import sys

import pytest

from snapline.cli.app import main
from snapline.rundir.directory import RunDirectory


@pytest.fixture
def snapline(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["snapline", "compare", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        told = capsys.readouterr()
        return left.value.code, told.out, told.err

    return run


@pytest.fixture
def stored(tmp_path):
    def store(protocol, rates, kept="yes"):
        names = []
        for rate in rates:
            spec = {"flow": "q12", "protocol": protocol, "slots": 2}
            directory = RunDirectory.create(tmp_path / "runs", "q12", protocol, spec)
            metrics = {"rate": {"read": rate, "written": rate}, "restart_s": [0.5]}
            directory.write("result.json", {"kept": kept, "because": "x", "metrics": metrics})
            names.append(directory.name)
        return ",".join(names)

    return store


def test_two_runs_are_a_pair_without_certainty(snapline, stored):
    code, out, err = snapline(stored("aligned", [1_000]), stored("hmnr", [900]))
    assert (code, err) == (0, "")
    said = [" ".join(line.split()) for line in out.splitlines()]
    assert "protocol aligned -> hmnr" in said
    assert "records read 1,000 /s 900 /s 0.900" in said
    assert "1 pair of runs; no interval, because one pair says nothing about chance" in said


def test_six_pairs_are_sure_and_a_threshold_sets_the_exit_code(snapline, stored):
    first = stored("aligned", [1_000, 1_010, 990, 1_005, 1_000, 1_020])
    second = stored("hmnr", [800, 805, 790, 803, 801, 810])
    code, out, _ = snapline(first, second, "--threshold", "10%")
    assert code == 1
    assert "20.2 % slower" in out
    assert "worse: records read is 20.2 % slower" in out
    assert snapline(first, second, "--threshold", "30%")[0] == 0
    assert snapline(second, first, "--threshold", "10%")[0] == 0
    document = json.loads(snapline(first, second, "--json", "--margin", "5%")[1])
    assert document["settings"] == {"protocol": ["aligned", "hmnr"]}
    assert document["figures"]["records read"]["answer"] == "less"
    assert document["figures"]["restart"]["answer"] == "alike"
    assert document["figures"]["records read"]["sure"] is True


def test_a_run_that_is_not_proved_right_is_named(snapline, stored):
    _, _, err = snapline(stored("aligned", [1_000]), wrong := stored("hmnr", [900], kept="no"))
    assert f"{wrong} has not kept its promise" in " ".join(err.split())


def test_bad_input_is_one_message(snapline, stored, tmp_path):
    one, two = stored("aligned", [1_000]), stored("hmnr", [900, 901])
    spec = {"flow": "q12", "protocol": "none", "slots": 2}
    unfinished = RunDirectory.create(tmp_path / "runs", "q12", "none", spec)
    empty = RunDirectory.create(tmp_path / "runs", "q12", "none", spec)
    empty.write("result.json", {"kept": "yes", "because": "x", "metrics": 7})
    for arguments, said in (
        ((one, two), "1 run and 2 runs are no pairs"),
        ((one, "nowhere"), "nowhere"),
        ((one, ""), "run"),
        ((one, unfinished.name), "it is not over"),
        ((one, empty.name), "no figure in common"),
        ((one, one, "--threshold", "5%"), "needs 6 pairs of runs, and there is 1"),
        ((one, one, "--margin", "much"), "--margin is a number of percent"),
        ((one, one, "--margin", "-5%"), "--margin is a number of percent"),
    ):
        code, out, err = snapline(*arguments)
        assert (code, out) == (2, ""), arguments
        assert said in " ".join(err.split()), err
        assert "Traceback" not in err
