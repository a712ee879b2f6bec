"""`snapline simulate --figures`: figures with marks, as text and as JSON, and what is refused."""

import json
import sys
from typing import Any

import pytest
import typer.main

from a_profile import PROFILE
from snapline.cli.app import app, main
from snapline.cli.experiments import predicted
from snapline.scale.profile import Checked, PredictionCheck, write_profile

CHECKS = tuple(
    PredictionCheck(Checked.BYTES, "q12", "aligned", slots, 1.0, 1.0, 2, 500, 1_000)
    for slots in (4, 10)
)
RUN = (
    *("simulate", "--figures", "--protocol", "aligned", "--workload", "q12"),
    *("--rate", "1000", "--duration", "2s", "--interval", "500ms", "--faults", "kill slot=1 at=1s"),
)


@pytest.fixture
def profile(tmp_path):
    path = tmp_path / "profile.json"
    path.write_text(write_profile(PROFILE.with_checks(CHECKS)))
    return str(path)


def told(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["snapline", *arguments])
    with pytest.raises(SystemExit) as left:
        main()
    said = capsys.readouterr()
    return left.value.code, said.out, said.err


def test_figures_are_printed_with_their_marks(monkeypatch, capsys, profile):
    code, out, _ = told(monkeypatch, capsys, *RUN, "--profile", profile, "--slots", "4")
    assert code == 0
    assert "simulated: q12 under aligned, 4 slots, a core each" in out
    assert "2,000 read, 2,000 written" in out
    assert "1 slot lost" in out
    assert "bytes: extrapolated (compared without what was asked for here: faults)" in out
    assert "restart_s: not validated" in out
    assert "all other figures: not validated" in out


def test_a_run_like_those_that_were_compared_is_validated(monkeypatch, capsys, profile):
    asked = (*RUN[:-2], "--profile", profile, "--slots", "4", "--cores", "2")
    code, out, _ = told(monkeypatch, capsys, *asked)
    assert code == 0
    assert "bytes: validated (compared with up to 10 slots; at worst +0.0%)" in out
    assert "rate:" not in out, "no rate is compared"


def test_the_same_as_json(monkeypatch, capsys, profile):
    asked = (*RUN, "--profile", profile, "--slots", "12", "--cores", "2", "--json")
    code, out, _ = told(monkeypatch, capsys, *asked)
    found = json.loads(out)
    assert (code, found["simulated"], found["cores"], found["problem"]) == (0, True, 2, None)
    assert found["metrics"]["records_read"] == 1_992  # a whole number for each of 12 slots
    assert found["marks"]["bytes"] == "extrapolated"
    assert found["because"]["bytes"] == "compared with up to 10 slots"
    assert found["marks"]["latency_ms"] == "not validated"
    assert set(found["marks"]) == set(found["metrics"]) - {"version"}


def test_an_option_of_simulate_is_taken_with_figures_or_refused():
    group: Any = typer.main.get_command(app)
    known = {each.name for each in group.commands["simulate"].params} - {"help"}
    taken = {*predicted.AS_FOR_A_RUN, *predicted.ONLY_HERE, "workload", "figures"}
    assert known == taken | set(predicted.NOT_HERE) | {"as_json", "verbose"}


def test_a_pool_gets_the_slots_that_were_given(monkeypatch, capsys, profile):
    asked = (*RUN, "--profile", profile, "--slots", "2", "--pool", "nobody=3")
    code, out, err = told(monkeypatch, capsys, *asked)
    assert (code, out) == (2, "")
    assert "nobody" in err


def test_a_diluted_run_says_so(monkeypatch, capsys, profile):
    asked = (*RUN, "--profile", profile, "--slots", "4", "--dilute", "5")
    code, out, _ = told(monkeypatch, capsys, *asked)
    assert code == 0
    assert "a core each, diluted 5 times" in out
    assert "no figure of a diluted run" in out
    assert "memory" not in out
    assert "bytes: extrapolated (compared without dilution)" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("simulate", "--figures"), "--figures needs --profile FILE"),
        (("simulate", "--rate", "5"), "--rate is for a run with figures: add --figures"),
        (("simulate", "--profile", "x"), "--profile is for a run with figures: add --figures"),
        ((*RUN, "--profile", "nowhere"), "cannot read the profile nowhere"),
        ((*RUN, "--seeds", "3"), "--seeds makes many runs"),
        ((*RUN, "--diagram", "x.svg"), "--diagram draws a run that is watched"),
        ((*RUN, "--records", "3", "--profile", "x"), "--records with --figures is for --rate max"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, said, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    code, out, err = told(monkeypatch, capsys, *arguments)
    assert (code, out) == (2, "")
    assert f"bad input: {said}" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("protocol", "workload", "said"),
    [("all", "q12", "all"), ("aligned", "all", "all"), ("aligned", "reachability", "cycle")],
)
def test_one_protocol_and_one_workload_that_fit_each_other(
    protocol, workload, said, monkeypatch, capsys, profile
):
    asked = ("simulate", "--figures", "--protocol", protocol, "--workload", workload)
    code, _, err = told(monkeypatch, capsys, *asked, "--profile", profile)
    assert code == 2
    assert said in err


def test_calibrate_refuses_before_anything_is_measured(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    code, _, err = told(monkeypatch, capsys, "calibrate", "--keep-costs")
    assert code == 2
    assert "--keep-costs leaves nothing to do without --check" in err
    code, _, err = told(monkeypatch, capsys, "calibrate", "--keep-costs", "--check")
    assert code == 2
    assert "cannot read the profile profile.json" in err
    assert list(tmp_path.iterdir()) == []
