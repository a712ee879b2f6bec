"""The papers' figures as they are shipped, their scoreboard, and `snapline sweep PAPER` without Spark."""

import json
import sys
import tomllib
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, is_dataclass
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from snapline.chaos.faults import parse, start_ms
from snapline.cli.app import main
from snapline.engine.options import OPTIONS
from snapline.errors import UsageError
from snapline.experiments import papers
from snapline.experiments import sweep as sweeping
from snapline.experiments.papers.catalogue import (
    CAPACITY,
    PAPERS,
    find_experiments,
    read_paper,
    read_shipped,
)
from snapline.experiments.papers.claims import orders
from snapline.experiments.papers.estimate import runs_s
from snapline.experiments.rates.capacity import Capacity
from snapline.experiments.sweep import check_sweep
from snapline.metrics.figures import Figures

ROOT = Path(__file__).parents[3]

#: every figure and table of the papers that is the result of a measurement
CATALOGUE = {
    "checkmate": {*(f"fig{n}" for n in range(7, 14)), "tab2", "tab3", "tab4"},
    "thesis": {*(f"fig6.{n}" for n in range(1, 11)), "tab6.1", "tab6.2", "tab6.3"},
    "abs": {"fig6", "fig7"},
    "spade": {"fig7", "tab1", "fig8", "fig9", "fig10", "zipf"},
    "pgval": {*(f"fig{n}" for n in range(5, 17)), "tab4"},
    "beyond": {"hmnr-bcs", "skew-map", "batch-price", "compress", "by-count", "at-window-close"},
}


def forms_of(paper, full=False):
    figures = [each for each in paper.figures.values() if not each.lacking]
    forms = [each.form(full) for each in figures]
    return {form.name: form for form in forms if form is not None}


@pytest.mark.parametrize("name", PAPERS)
def test_every_figure_of_a_paper_has_a_row(name):
    assert CATALOGUE[name] <= read_shipped(name).figures.keys()


@pytest.mark.parametrize("name", PAPERS)
def test_every_run_of_a_shipped_experiment_can_be_prepared(name, tmp_path):
    """By the checks of a real run: arguments, protocol and dataflow, faults, cores."""
    for form in forms_of(read_shipped(name)).values():
        sweep = form.sweep()
        check_sweep(sweep, tmp_path)
        for column in sweep.columns:
            for fault in parse(column.spec.faults):
                assert start_ms(fault) + 5_000 < column.spec.duration_ms, form.name


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_every_run_of_a_full_form_can_be_prepared(name, tmp_path):
    """It takes long only because jobs with fifty slots are built."""
    for form in forms_of(read_shipped(name), full=True).values():
        check_sweep(form.sweep(), tmp_path)


@pytest.mark.parametrize("simulated", [False, True])
@pytest.mark.parametrize("name", PAPERS)
def test_the_short_forms_of_a_paper_take_half_an_hour_at_most(name, simulated):
    """Those that are made, and beside them those that are simulated if there is a profile."""
    forms = [f for f in forms_of(read_shipped(name)).values() if f.simulated == simulated]
    sweeps = [(form, form.sweep()) for form in forms]
    columns = [column for _, sweep in sweeps for column in sweep.columns]
    assert runs_s([(form, sweep.cells) for form, sweep in sweeps], columns) <= 30 * 60


@pytest.mark.parametrize("name", PAPERS)
def test_a_short_form_has_turns_enough_for_its_claims_or_says_that_it_only_indicates(name):
    """Six turns carry three comparisons: more would make all of them indicated, for nothing."""
    for figure in read_shipped(name).figures.values():
        if figure.quick is None or figure.lacking:
            continue
        comparisons = {order for claim in figure.claims.values() for order in orders(claim)}
        turns = figure.quick.sweep().turns
        assert turns < 6 or len(comparisons) / 2**turns <= 0.05, figure.name


def leads_somewhere(kind, names):
    """Whether a path leads through the dataclasses of a result to a number; a mapping has any names."""
    if get_origin(kind) is Mapping:
        return len(names) > 1 and leads_somewhere(get_args(kind)[1], names[1:])
    for part in (kind, *get_args(kind)):
        if is_dataclass(part):
            hints = get_type_hints(part)
            return names[0] in hints and leads_somewhere(hints[names[0]], names[1:])
    return not names


@pytest.mark.parametrize("name", PAPERS)
def test_what_claims_name_is_measured(name):
    """A misspelt path would be taken for something that is not measured yet, for ever."""
    paper = read_shipped(name)
    sides = [
        side
        for figure in paper.figures.values()
        for claim in figure.claims.values()
        for order in orders(claim)
        for side in (order.left, order.right)
        if side.figure is not None
    ]
    metrics = [paper.metric(side.figure) for side in sides]
    paths = {path for each in metrics for path in (*each.paths, *filter(None, [each.over]))}
    unknown = {path for path in paths if not leads_somewhere(Figures, path.split("."))}
    assert unknown <= {CAPACITY}


def test_a_figure_that_needs_an_option_is_run_once_there_is_one(monkeypatch):
    figure = read_shipped("beyond").figures["compress"]
    monkeypatch.setattr(
        "snapline.experiments.papers.catalogue._KINDS", {"option": {**OPTIONS, "compress": 1}}
    )
    assert figure.lacking == ""
    monkeypatch.setattr("snapline.experiments.papers.catalogue._KINDS", {"option": {}})
    assert figure.lacking == "there is no option compress yet"


def test_the_files_of_data_are_in_the_wheel():
    """A wheel has all files of its packages that git does not ignore."""
    folder = files(papers)
    assert {f"{name}.toml" for name in PAPERS} == {
        file.name for file in folder.iterdir() if file.name.endswith(".toml")
    }
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    assert "src/snapline" in build["targets"]["wheel"]["packages"]
    assert not {"exclude", "only-include"} & {*build, *build["targets"]["wheel"]}
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert not [line for line in ignored if "toml" in line]


SMALL = """
[paper]
title = "A paper"
authors = "Nobody"
year = 2026
settings = "none"
[base]
slots = 1
rate = 100
duration = "1s"
[metric.speed]
path = "rate.read"
[metric.log]
path = "bytes.log"
[form.short]
turns = 6
[form.short.base]
flow = "q12"
[form.short.matrix]
protocol = ["none", "aligned", "hmnr"]
[form.brief]
turns = 2
[form.brief.base]
flow = "q12"
[form.brief.matrix]
hot = [0]
protocol = ["none", "aligned"]
[form.load]
[form.load.base]
flow = "q12"
rate = "50% of capacity"
[form.load.matrix]
protocol = ["none", "aligned"]
[[figure]]
id = "fig1"
title = "speed"
varies = "protocol"
finding = "it costs"
quick = "short"
claims = ["speed[aligned] < speed[none]"]
[[figure]]
id = "fig2"
title = "speed, with few turns"
varies = "protocol"
finding = "it costs"
quick = "brief"
claims = ["speed[aligned] < speed[none]"]
[[figure]]
id = "fig3"
title = "the other way round"
varies = "protocol"
finding = "it gains"
quick = "short"
claims = ["speed[hmnr] > speed[none]", "log[hmnr] < 1"]
[[figure]]
id = "fig4"
title = "bytes"
varies = "protocol"
finding = "few"
quick = "short"
claims = ["log[hmnr] < 1"]
[[figure]]
id = "fig5"
title = "capacity"
varies = "protocol"
finding = "less"
quick = "load"
claims = ["capacity[aligned] < capacity[none]"]
[[figure]]
id = "tab1"
title = "what comes later"
varies = "nothing"
finding = "something | with a bar"
later = "nobody can do it yet"
"""


@dataclass
class MadeUp:
    """Stands for a run that is over."""

    name: str
    metrics: dict[str, Any]
    verdict: Any
    losses: None = None


@dataclass
class Verdict:
    kept: str = "yes"
    because: str = "it is right"


class Session:
    def stop(self):
        pass


class World:
    """Plays Spark and the machine."""

    def __init__(self, monkeypatch):
        self.made = []
        self.wrong = set()  #: protocols whose output is wrong
        monkeypatch.setattr(sweeping, "own_session", lambda *_: Session())
        monkeypatch.setattr(sweeping, "run", self.run)
        monkeypatch.setattr(sweeping, "LoadWatch", self.watch)

    def watch(self):
        return nullcontext(SimpleNamespace(foreign=0.0))

    def run(self, spec, *_, **__):
        self.made.append(spec.protocol)
        number = len(self.made)
        speed = {"none": 1_000, "aligned": 900, "hmnr": 500}[spec.protocol]
        kept = "no" if spec.protocol in self.wrong else "yes"
        rate = speed * (1 + (number * 7 % 5) / 1_000)
        return MadeUp(f"run-{number}", {"rate": {"read": rate}}, Verdict(kept, "a row is missing"))


@pytest.fixture
def world(monkeypatch):
    return World(monkeypatch)


@pytest.fixture
def snapline(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    small = read_paper("abs", SMALL)
    monkeypatch.setattr(
        "snapline.experiments.papers.catalogue.read_shipped",
        lambda name: small if name == "abs" else read_shipped(name),
    )

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["snapline", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        told = capsys.readouterr()
        return left.value.code, told.out, told.err

    return run


def verdicts(out):
    return {row["figure"]: row["verdict"] for row in json.loads(out)["rows"]}


def test_a_paper_is_swept_and_its_scoreboard_has_all_verdicts(
    snapline, world, tmp_path, monkeypatch
):
    monkeypatch.setattr(sweeping, "find_capacity", lambda prober, form: Capacity(100, 110, ()))
    code, out, _ = snapline("sweep", "abs", "--json")
    assert code == 0
    assert verdicts(out) == {
        "abs-fig1": "holds",
        "abs-fig2": "indicated",
        "abs-fig3": "does not hold",
        "abs-fig4": "cannot be tested here",
        "abs-fig5": "cannot be tested here",
        "abs-tab1": "cannot be tested here",
    }
    document = json.loads(out)
    assert document["expected_by_chance"] == 0.1  # of two rows that could have held
    assert "bytes.log is not measured" in json.dumps(document["rows"][3])
    board = (tmp_path / "sweeps/abs/scoreboard.md").read_text()
    assert "| **fig1** speed<br>`snapline sweep abs-fig1` | it costs |" in board
    assert "speed[aligned] &lt; speed[none]: holds; 90" in board
    assert "something \\| with a bar | nobody can do it yet | **cannot be tested here** |" in board
    assert "1 holds, 1 indicated, 1 does not hold, 3 cannot be tested here" in board
    assert "at most 0.1 of them" in board.splitlines()[-1]


def test_figures_share_runs_and_one_figure_can_be_asked_for(snapline, world):
    code, out, _ = snapline("sweep", "abs-fig1", "--json")
    assert (code, len(world.made)) == (0, 6 * 4)
    assert verdicts(out)["abs-fig1"] == "holds"
    assert "not measured yet" in out
    # fig3 is read from the same runs, and the first two turns of fig2 have been run already
    assert snapline("sweep", "abs", "--figure", "fig3", "--json")[0] == 0
    assert len(world.made) == 6 * 4
    code, out, _ = snapline("sweep", "abs-fig2", "--json")
    assert (verdicts(out)["abs-fig2"], len(world.made)) == ("indicated", 6 * 4)


def test_a_file_of_ones_own_with_figures_is_run_like_a_paper(snapline, world, tmp_path):
    (tmp_path / "mine.toml").write_text(SMALL)
    code, out, _ = snapline("sweep", "mine.toml", "--figure", "fig2")
    assert (code, len(world.made)) == (0, 2 * 3)
    assert "snapline sweep mine.toml --figure fig2" in out
    assert (tmp_path / "sweeps/mine/scoreboard.md").is_file()


def test_a_run_whose_output_is_wrong_proves_nothing(snapline, world):
    world.wrong = {"hmnr"}
    code, out, _ = snapline("sweep", "abs-fig1")
    assert code == 3
    told = " ".join(out.split())
    assert "fig1 speed: cannot be tested here" in told
    assert "is not proved right: a row is missing" in told


def test_a_dry_run_shows_runs_and_minutes_and_starts_nothing(snapline, world, tmp_path):
    code, out, _ = snapline("sweep", "abs", "--dry-run")
    told = " ".join(out.split())
    assert (code, world.made, (tmp_path / "sweeps").exists()) == (0, [], False)
    assert "short fig1, fig3, fig4 6 24 0" in told
    assert "tab1 is left out: nobody can do it yet" in told
    assert "left" in told
    document = json.loads(snapline("sweep", "abs", "--dry-run", "--json")[1])
    assert document["forms"][0]["figures"] == ["fig1", "fig3", "fig4"]
    assert document["left_s"] > 24 * 7


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("abs-fig9",), "abs has no figure 'fig9': did you mean"),
        (("abs-fig1", "--figure", "fig1"), "is one figure already"),
        (("checkmat",), "no file of that name: did you mean checkmate?"),
        (("nowhere/x",), "there is no experiment"),
        (("some.toml", "--full"), "--full is for papers"),
        (("some.toml", "--figure", "fig1"), "--figure is for papers"),
        (("some.toml",), "some.toml cannot be read"),
    ],
)
def test_what_is_no_experiment_is_refused(snapline, world, arguments, told):
    code, _, err = snapline("sweep", *arguments)
    assert (code, world.made) == (2, [])
    assert told in " ".join(err.split())


def test_experiments_are_listed_with_how_long_they_take(snapline):
    listed = json.loads(snapline("list", "experiments", "--json")[1])["experiments"]
    rows = {row["name"]: row["quick"] for row in listed}
    assert rows["pgval-fig7"] == "not yet"
    assert rows["checkmate-fig11"].startswith("about ")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('quick = "brief"', 'quick = "short form"', "the figure fig2: did you mean short"),
        ('later = "nobody can do it yet"', "", "tab1 has no quick form"),
        ('id = "fig2"', 'id = "fig1"', "two figures have the same id"),
        ("speed[aligned] <", "speed[alinged] <", "'alinged' is no value of what varies"),
        ("speed[aligned] <", "speed[] <", "several columns for one of the other"),
        ("speed[aligned] <", "speed[aligned] =", "is not understood"),
        ('title = "bytes"', 'titel = "bytes"', "there is no 'titel' in the figure fig4"),
        ('path = "bytes.log"', "", "[metric.log] has a path"),
        ('protocol = ["none", "aligned", "hmnr"]', 'protocol = ["no"]', "there is no protocol"),
        ('later = "nobody', 'needs = ["miracle x"]\nlater = "nobody', "needs 'miracle x'"),
        ("[paper]", "[paper", "is no TOML file"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_when_it_is_read(old, new, told):
    assert old in SMALL
    with pytest.raises(UsageError, match=None) as refused:
        read_paper("small", SMALL.replace(old, new, 1))
    assert told in str(refused.value)
    assert str(refused.value).startswith("small")


def test_names_lead_to_papers_and_figures():
    with pytest.raises(UsageError, match="there is no experiment 'miracle'"):
        find_experiments("miracle", None)
    paper, [figure] = find_experiments("thesis-tab6.1", None)
    assert (paper.name, figure.id) == ("thesis", "tab6.1")
    assert find_experiments("thesis", "tab6.1") == (paper, [figure])
    assert len(find_experiments("checkmate", None)[1]) > 10
