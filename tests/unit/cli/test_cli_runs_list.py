"""The list of runs, and the removal of old ones; the runs were made by hand."""

import os
import sys
import time

import pytest

from snapline.cli.app import main
from snapline.cli.pages import run_table
from snapline.cli.pages.run_table import ListedRun, print_runs
from snapline.cli.terminal import console
from snapline.errors import UsageError
from snapline.rundir import presence
from snapline.rundir.directory import RunDirectory

DAY_S = 86_400


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


@pytest.fixture
def aged(tmp_path):
    def make(days, flow="q12"):
        spec = {"flow": flow, "protocol": "aligned", "faults": "", "origin_s": 1_794_800_000.5}
        directory = RunDirectory.create(tmp_path / "runs", flow, "aligned", spec)
        (directory.path / "store" / "large").write_bytes(bytes(5_000))
        at_s = time.time() - days * DAY_S
        for path in (*directory.path.rglob("*"), directory.path):
            os.utime(path, (at_s, at_s))
        return directory.path

    return make


def test_the_list_has_dates_sizes_and_verdicts(snapline, aged):
    path = aged(0)
    code, out, err = snapline()
    heads, row = (line.split("  ") for line in out.splitlines())
    assert code == 0
    assert [h.strip() for h in heads if h] == [
        *("run", "began", "size", "flow", "protocol", "faults", "verdict")
    ]
    assert row[0] == path.name
    assert "2026-11-16" in out
    assert " kB" in out
    assert out.splitlines()[1].endswith("not finished")
    assert err.startswith("1 run, ")


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (200, ["run", "began", "size", "flow", "protocol", "faults", "verdict"]),
        (100, ["run", "began", "size", "flow", "protocol", "verdict"]),
        (64, ["run", "began", "verdict"]),
        (20, ["run", "verdict"]),
    ],
)
def test_a_narrow_terminal_gets_fewer_columns(width, columns, monkeypatch, capsys):
    run = ListedRun(
        "q12-uncoordinated-calm-ember",
        {
            "flow": "q12",
            "protocol": "uncoordinated",
            "faults": "kill slot=1 at=8s; kill slot=0 at=9s",
        },
        {"kept": "yes"},
        1_000,
        1e9,
    )
    made = console.results

    def narrow():
        shown = made()
        shown.width = width
        return shown

    monkeypatch.setattr(run_table, "results", narrow)
    print_runs([run])
    out = capsys.readouterr().out
    assert out.splitlines()[0].split() == columns
    assert max(map(len, out.splitlines())) <= max(width, 20)


def test_old_runs_are_removed_and_named(snapline, aged):
    old, older, young = aged(8), aged(30, "q3"), aged(1)
    code, out, err = snapline("rm", "--older", "7d")
    assert (code, out) == (0, "")
    assert not old.exists()
    assert not older.exists()
    assert young.exists()
    assert f"removed {old.name}" in err
    assert "2 runs removed, 10." in err
    assert snapline("rm", "--older", "12h")[0] == 0
    assert not young.exists()


def test_a_run_that_goes_on_stays_however_old_it_is(snapline, aged, monkeypatch):
    path = aged(9)

    def driven(directory):
        raise UsageError(f"{directory.name} is being run by process 7")

    monkeypatch.setattr(presence, "refuse_if_driven", driven)
    code, _, err = snapline("rm", "--older", "7d")
    assert code == 0
    assert path.exists()
    assert f"{path.name} stays" in err
    assert "0 runs removed" in err


def test_a_run_that_goes_on_is_not_removed_by_its_name_either(snapline, aged):
    path = aged(0)
    here = presence.Presence.announce(RunDirectory(path), "this test")
    for name in (path.name, "last"):
        code, out, err = snapline("rm", name)
        assert (code, out) == (2, "")
        assert f"{path.name} is being run by process {os.getpid()}" in " ".join(err.split())
        assert path.exists()
    here.leave()
    assert snapline("rm", path.name)[0] == 0
    assert not path.exists()


@pytest.mark.parametrize("age", ["7", "x", "", "-1d", "1.5d", "0d0", "7 d"])
def test_an_age_that_is_none_is_refused(snapline, aged, age):
    path = aged(900)
    code, _, err = snapline("rm", "--older", age)
    assert code == 2
    assert "--older is written as 7d, 12h or 30m" in err
    assert path.exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("rm", "x", "--older", "7d"), "but not both"),
        (("list", "--older", "7d"), "is for 'snapline runs rm'"),
        (("output", "--older", "7d"), "is for 'snapline runs rm'"),
        (("rm",), "or --older 7d"),
    ],
)
def test_an_age_is_for_removing_alone(snapline, given, said):
    code, _, err = snapline(*given)
    assert code == 2
    assert said in err
