"""Sweeps whose runs are simulated: marks on every value, verdicts as far as the model was validated."""

import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from snapline.cli.app import main
from snapline.errors import UsageError
from snapline.experiments.papers.catalogue import PAPERS, PaperMetric, read_paper, read_shipped
from snapline.experiments.papers.claims import read_claim
from snapline.experiments.papers.verdicts import FigureRuns, Standing, judge_claims
from snapline.experiments.sweep_file import SIMULATED, sweep_of
from snapline.rundir.spec import Spec
from snapline.scale.advice.rough import ROUGH
from snapline.scale.predict import predict
from snapline.scale.profile import Checked, PredictionCheck, write_profile

HOLDS, INDICATED, FAILS, UNTESTED = Standing
PAPER = """
[paper]
title = "Many"
authors = "me"
year = 2026
settings = "many slots"
[metric.bytes]
sum = ["bytes.payload", "bytes.headers"]
over = "records_read"
[form.many]
launcher = "simulated"
[form.many.simulated]
cores = 2
[form.many.base]
flow = "counting"
rate = 100
duration = "1s"
options = { batch = 1 }
[form.many.matrix]
slots = [2, 3]
protocol = ["none", "hmnr"]
[[figure]]
id = "tab1"
title = "bytes"
varies = "protocol, slots"
finding = "headers cost"
quick = "many"
claims = [
    "bytes[hmnr slots=2] > 1.1 * bytes[none slots=2]",
    "bytes[hmnr slots=3] > 1.1 * bytes[none slots=3]",
]
"""


def checked(protocol, error=0.0):
    predicted = 10 * (1 + error)
    return PredictionCheck(
        *(Checked.BYTES, "counting", protocol, 2, predicted, 10.0),
        cores=2,
        interval_ms=5_000,
        rate=100,
        batch=1,
    )


def sweep(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["snapline", "sweep", "many.toml", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, *capsys.readouterr()


def test_a_simulated_figure_has_a_verdict_with_marks(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "many.toml").write_text(PAPER)
    profile = replace(ROUGH, checks=(checked("none"), checked("hmnr")))
    (tmp_path / "profile.json").write_text(write_profile(profile))
    code, out, err = sweep(monkeypatch, capsys, "--json")
    assert code == 0, err
    assert "left out: tab1, which are simulated (--profile FILE)" in err
    [row] = json.loads(out)["rows"]
    assert row["verdict"] == "cannot be tested here"
    assert row["why"].startswith("it is simulated: say --profile FILE")
    code, out, err = sweep(monkeypatch, capsys, "--json", "--profile", "profile.json")
    assert code == 0, err
    [row] = json.loads(out)["rows"]
    assert row["slots_are"] == SIMULATED
    two, three = (claim["comparisons"][0] for claim in row["claims"])
    assert (two["verdict"], three["verdict"]) == ("holds", "indicated")
    assert "simulated, validated: compared with up to 2 slots" in two["why"]
    assert "simulated, extrapolated: compared with up to 2 slots" in three["why"]
    cells = [json.loads(file.read_text()) for file in (tmp_path / "sweeps/many/cells").iterdir()]
    assert len(cells) == 4
    assert all(cell["marks"]["restart_s"][0] == "not validated" for cell in cells)
    assert {cell["marks"]["bytes"][0] for cell in cells} == {"validated", "extrapolated"}
    _, _, err = sweep(monkeypatch, capsys, "--profile", "profile.json")
    assert "simulated in" not in err, "what was simulated with this profile is kept"
    (tmp_path / "profile.json").write_text(write_profile(ROUGH))
    _, _, err = sweep(monkeypatch, capsys, "--profile", "profile.json")
    assert err.count("simulated in ") == 4, "another profile, another result"


@pytest.mark.parametrize("protocol", ["none", "aligned"])
def test_a_diluted_run_counts_as_many_records_as_it_stands_for(protocol):
    spec = Spec("counting", protocol=protocol, rate=200, duration_ms=1_000)
    thin, thick = (predict(spec, ROUGH, dilution=k).figures for k in (1, 10))
    assert (thin.records_read, thin.records_written) == (thick.records_read, thick.records_written)


def judged(claim, mark, left, right, bar=0.1):
    """A claim about two columns whose values were simulated with this mark; a third has none."""
    results = [
        {
            "turn": 1,
            "again": False,
            "varied": {"protocol": name},
            "run": name,
            "metrics": {"rate": value},
            "marks": {} if name == "c" else {"rate": [mark, "so it is", bar]},
        }
        for name, value in (("a", left), ("b", right), ("c", 1.0))
    ]
    paper = SimpleNamespace(metric=lambda name: PaperMetric(name, (name,)))
    runs = FigureRuns(paper, [{"protocol": name} for name in "abc"], results, SIMULATED)
    [found] = judge_claims({claim: read_claim(claim)}, runs)
    return found.parts[0]


@pytest.mark.parametrize(
    ("mark", "left", "standing"),
    [
        ("validated", 10.0, HOLDS),
        ("validated", 6.0, INDICATED),  # within what the model may be wrong
        ("validated", 4.9, UNTESTED),
        ("validated", 1.0, FAILS),
        ("extrapolated", 10.0, INDICATED),
        ("extrapolated", 1.0, UNTESTED),
        ("not validated", 10.0, INDICATED),
        ("not validated", 1.0, UNTESTED),
    ],
)
def test_only_what_was_validated_is_sure_and_only_beyond_its_error(mark, left, standing):
    found = judged("rate[a] > rate[b]", mark, left, 5.0)
    assert (found.standing, found.sure) == (standing, False)
    assert found.why.startswith(f"simulated, {mark}: so it is")


def test_a_figure_that_was_never_compared_is_not_validated():
    found = judged("rate[a] > rate[b]", "validated", 10.0, 1.0)
    assert found.standing is HOLDS
    assert judged("rate[a] > 2", "validated", 10.0, 1.0).standing is HOLDS
    assert judged("rate[a] > rate[c]", "validated", 10.0, 1.0).standing is INDICATED


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"launcher": "spark", "simulated": {"cores": 2}}, r"\[simulated\] is for launcher"),
        ({"launcher": SIMULATED, "simulated": {"x": 2}}, "there is no 'x' in"),
        ({"launcher": SIMULATED, "simulated": {"dilute": 0}}, "dilute"),
    ],
)
def test_what_is_said_about_simulated_runs_is_checked(content, said):
    with pytest.raises(UsageError, match=said):
        sweep_of({**content, "base": {"flow": "q12"}})
    share = {"launcher": SIMULATED, "base": {"flow": "q12", "rate": "80% of capacity"}}
    with pytest.raises(UsageError, match="share of the capacity"):
        sweep_of(share)


def test_the_shipped_figures_at_scale_are_simulated_and_every_turn_has_its_seed():
    found = {
        figure.name: figure.quick.sweep()
        for name in PAPERS
        for figure in read_shipped(name).figures.values()
        if figure.quick is not None and figure.quick.simulated
    }
    assert {"checkmate-fig7-scale", "thesis-tab6.3-scale", "abs-fig7"} <= set(found)
    most = {name: max(c.spec.slots for c in each.columns) for name, each in found.items()}
    assert (most["checkmate-fig7-scale"], most["abs-fig7"]) == (100, 40)
    assert not any(column.again for each in found.values() for column in each.columns)
    twice = read_paper("p", PAPER.replace('launcher = "s', 'turns = 2\nlauncher = "s'))
    cells = twice.figures["tab1"].quick.sweep().cells
    assert {(cell.turn, cell.spec.seed) for cell in cells} == {(1, 1), (2, 2)}
