"""`snapline simulate` on the real simulator: that the two fit, on the smallest runs."""

import json
import shlex
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from snapline.cli.app import main
from snapline.sim.case import Case


@pytest.fixture
def snapline(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["snapline", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        told = capsys.readouterr()
        return left.value.code, told.out, told.err

    return run


def test_one_run_is_told_and_drawn(snapline, tmp_path):
    code, out, _ = snapline(
        *("simulate", "--protocol", "aligned", "--seed", "1"),
        *("--faults", "kill slot=1 at=1s", "--diagram", "run.svg"),
    )
    assert code == 0
    assert "1,000 ms  slot/1 is killed" in out
    assert "rollback: every task to checkpoint" in out
    assert "kept" in out
    assert ElementTree.parse(tmp_path / "run.svg").getroot().tag.endswith("svg")


def test_a_sweep_runs_in_several_processes(snapline):
    code, out, _ = snapline(
        "simulate", "--protocol", "bcs", "--seeds", "3", "--jobs", "2", "--json"
    )
    document = json.loads(out)
    assert (code, document["kept"], document["runs"]) == (0, "yes", 3)
    assert document["cells"][0]["crashes"] > 0


def test_a_cycle_under_aligned_is_refused_with_those_that_can(snapline):
    code, _, err = snapline(
        "simulate", "--protocol", "aligned", "--workload", "nhop", "--seed", "1"
    )
    assert code == 2
    assert "uncoordinated" in err


def test_a_failure_file_is_repeated(snapline, tmp_path):
    case = Case("hmnr", "counting", 3, slots=2, records=5, faults="kill slot=1 at=300ms")
    (tmp_path / "x.json").write_text(json.dumps({"case": json.loads(case.to_json())}))
    code, out, _ = snapline("simulate", "--repeat", "x.json", "--json")
    document = json.loads(out)
    assert (code, document["case"]) == (0, json.loads(case.to_json()))
    assert document["stats"]["crashes"] == 1


def test_the_command_of_a_case_runs_that_case(snapline):
    case = Case("hmnr", "counting", 3, 2, 5, "at-least-once", "kill slot=1 at=300ms")
    for each in (case, replace(case, size="full", hot=40, hot_ms=700)):
        code, out, _ = snapline(*shlex.split(each.command())[1:], "--json")
        assert (code, json.loads(out)["case"]) == (0, json.loads(each.to_json()))


@pytest.mark.parametrize("workload", ["counting", "q12", "q8"])
def test_promises_are_kept_in_the_full_size_and_under_skew(snapline, workload):
    code, out, _ = snapline(
        *("simulate", "--protocol", "uncoordinated", "--workload", workload, "--seeds", "2"),
        *("--size", "full", "--hot", "50", "--hot-moves", "500ms", "--jobs", "1", "--json"),
    )
    assert (code, json.loads(out)["kept"]) == (0, "yes")
