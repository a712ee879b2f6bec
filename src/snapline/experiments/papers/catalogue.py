"""Reads the papers' figures and tables from their files of data, one TOML file for each paper.

[paper]                      title, authors, year, settings (of the paper's own measurements)
[base]                       what all runs have in common, but where a form says otherwise
[capacity]                   how a capacity is searched, where a rate is a share of it
[form.NAME]                  runs that several figures may share: turns, launcher, base, matrix, exclude and
                             simulated, as in a sweep file; `each` is about how many seconds a run takes
                             at rate max
[metric.NAME]                what is read of a result: path, or sum (several paths), and over (divided by)
[[figure]]                   a figure or table of the paper
    id, title, varies        fig7, tab2 ...; what it shows; what varies in it
    finding                  what the paper found
    values                   numbers of the paper, as data
    quick, full              names of forms; none: it cannot be measured, and `later` says what is missing
    claims                   what is tested: see `claims`
    needs                    what has to exist, as "option compress" or "system flink"
    limits                   what the runs here cannot show of it
    explained                why it is as it is here, as far as we know: for the page of findings

A user's own file has the same parts. Every file is checked as a whole when it is read: names, claims, and
that each claim finds its columns.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from snapline.arguments import named, nearest, text
from snapline.engine.options import OPTIONS
from snapline.errors import UsageError
from snapline.experiments.papers.claims import Claim, orders, read_claim
from snapline.experiments.papers.columns import chosen, paired_columns
from snapline.experiments.sweep_file import SIMULATED, Sweep, sweep_of
from snapline.plugins import Catalogue
from snapline.protocols import PROTOCOLS
from snapline.systems.registry import SYSTEMS
from snapline.workload import WORKLOADS

OWN = "beyond"
"""The file of questions that no paper asks."""

PAPERS = ("checkmate", "thesis", "abs", "spade", "pgval", OWN)
"""The files of data, in the order in which they are shown."""

_KINDS: Mapping[str, Catalogue[Any] | Mapping[str, Any]] = {
    "option": OPTIONS,
    "protocol": PROTOCOLS,
    "system": SYSTEMS,
    "workload": WORKLOADS,
}
_SAID = ("id", "title", "varies", "finding", "values", "limits", "explained")
_DONE = ("quick", "full", "claims", "needs", "later")
_FORM = ("turns", "launcher", "base", "matrix", "exclude", "each", "simulated")
_PAPER = ("paper", "base", "capacity", "form", "metric", "figure")


@dataclass(frozen=True, slots=True)
class PaperMetric:
    """A number that is read of the result of a run."""

    name: str
    paths: tuple[str, ...]  # what stands there is added up
    over: str | None = None  # ... and divided by what stands there

    @property
    def once(self) -> bool:
        """Whether it is found once for all turns, so that turns say nothing about its noise."""
        return self.paths == (CAPACITY,)


CAPACITY = "capacity"
"""The path of the capacity of which the rate of a run is a share."""


@dataclass(frozen=True, slots=True)
class PaperForm:
    """Runs that figures are read from: what a sweep file would say, and how long full speed takes."""

    name: str
    content: Mapping[str, Any]
    each_s: float  # of a run whose rate is max

    @property
    def simulated(self) -> bool:
        """Whether its runs are simulated, with the costs of a profile."""
        return bool(self.content.get("launcher") == SIMULATED)

    def sweep(self) -> Sweep:
        """The runs. Raises UsageError if this version cannot make them."""
        try:
            return sweep_of(self.content)
        except UsageError as error:
            raise UsageError(f"[form.{self.name}]: {error}") from error


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """A figure or table of a paper."""

    paper: str
    id: str
    title: str
    varies: str
    finding: str
    values: Mapping[str, Any]
    quick: PaperForm | None
    full: PaperForm | None
    claims: Mapping[str, Claim]  # by their texts
    needs: tuple[str, ...] = ()
    later: str = ""  # why it cannot be measured at all yet
    limits: str = ""
    explained: str = ""  # why it is as it is here

    @property
    def name(self) -> str:
        """How a user asks for it: `checkmate-fig7`, or of a file `mine.toml --figure fig7`."""
        shipped = self.paper in PAPERS
        return f"{self.paper}-{self.id}" if shipped else f"{self.paper} --figure {self.id}"

    @property
    def source(self) -> str:
        """Who says what it should show; of a question that no paper asks that is what we expect."""
        return "expected" if self.paper == OWN else "the paper"

    def form(self, full: bool) -> PaperForm | None:
        """The runs of its short or its full form; None if it has none."""
        return self.full if full else self.quick

    @property
    def lacking(self) -> str:
        """What it needs and this version does not have, in words; empty if it can be measured."""
        if self.later:
            return self.later
        missing = [need for need in self.needs if not _exists(need)]
        return f"there is no {' and no '.join(missing)} yet" if missing else ""


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper, and all its figures and tables that are experiments."""

    name: str
    title: str
    authors: str
    year: int
    settings: str
    figures: Mapping[str, PaperFigure]
    metrics: Mapping[str, PaperMetric]
    text: str = field(repr=False)  # its file

    def wanted(self, figure: str | None) -> list[PaperFigure]:
        """All figures, or the one of this id. Raises UsageError if there is none."""
        if figure is None:
            return list(self.figures.values())
        if figure not in self.figures:
            near = nearest(figure, self.figures)
            raise UsageError(f"{self.name} has no figure {figure!r}: {near}")
        return [self.figures[figure]]

    def metric(self, name: str) -> PaperMetric:
        """What a claim names: a metric of the file, or a path in a result."""
        return self.metrics.get(name) or PaperMetric(name, (name,))


@cache
def read_shipped(name: str) -> Paper:
    """One of `PAPERS`, from the file that Snapline brings with it."""
    content = (files(__package__) / f"{name}.toml").read_text(encoding="utf-8")
    return read_paper(name, content)


def read_paper(name: str, content: str) -> Paper:
    """Read the file of a paper. Raises UsageError, which names it and what is wrong in it."""
    try:
        return _paper(name, content)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name} is no TOML file: {error}") from error
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from error


def read_own(path: Path) -> Paper | None:
    """The figures in a file of the user's own; None if it has none. Raises UsageError."""
    try:
        content = path.read_text(encoding="utf-8")
        if "figure" not in tomllib.loads(content):
            return None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return None  # whoever reads it as a sweep file says what is wrong
    return read_paper(str(path), content)


def find_experiments(name: str, figure: str | None) -> tuple[Paper, list[PaperFigure]]:
    """The paper and the figures that a name asks for: `checkmate`, or `checkmate-fig7`.

    Raises UsageError if there is no such paper, or figure.
    """
    known, _, last = name.partition("-")
    if known not in PAPERS:
        near = nearest(known, PAPERS)
        raise UsageError(f"there is no experiment {name!r}, and no file of that name: {near}")
    if last and figure is not None:
        raise UsageError(f"{name} is one figure already: leave --figure out")
    paper = read_shipped(known)
    return paper, paper.wanted(last or figure)


def _exists(need: str) -> bool:
    kind, _, name = need.partition(" ")
    return name in _KINDS[kind]


def _paper(name: str, content: str) -> Paper:
    read = tomllib.loads(content)
    _only(read, _PAPER, "a paper's file")
    about = named(read.get("paper", {}), "[paper]")
    metrics = {each: _metric(each, said) for each, said in read.get("metric", {}).items()}
    forms = {each: _form(each, said, read) for each, said in read.get("form", {}).items()}
    figures = [_figure(name, said, forms) for said in read.get("figure", [])]
    if len({each.id for each in figures}) < len(figures):
        raise UsageError("two figures have the same id")
    paper = Paper(
        name,
        title=text(about.get("title"), "[paper] title"),
        authors=text(about.get("authors"), "[paper] authors"),
        year=int(about.get("year", 0)),
        settings=text(about.get("settings"), "[paper] settings"),
        figures={each.id: each for each in figures},
        metrics=metrics,
        text=content,
    )
    for each in figures:
        _check_columns(each)
    return paper


def _metric(name: str, said: Any) -> PaperMetric:
    said = named(said, f"[metric.{name}]")
    _only(said, ("path", "sum", "over"), f"[metric.{name}]")
    paths = said.get("sum", [said["path"]] if "path" in said else [])
    if not paths or not all(isinstance(path, str) for path in paths):
        raise UsageError(f"[metric.{name}] has a path, or a sum of paths")
    return PaperMetric(name, tuple(paths), said.get("over"))


def _form(name: str, said: Any, read: Mapping[str, Any]) -> PaperForm:
    said = named(said, f"[form.{name}]")
    _only(said, _FORM, f"[form.{name}]")
    parts = ("turns", "launcher", "matrix", "exclude", "simulated")
    content = {each: said[each] for each in parts if each in said}
    if "capacity" in read:
        content["capacity"] = read["capacity"]
    varies = named(said.get("matrix", {}), f"[form.{name}.matrix]")
    shared = {each: value for each, value in read.get("base", {}).items() if each not in varies}
    content["base"] = {**shared, **said.get("base", {})}
    return PaperForm(name, content, float(said.get("each", 0)))


def _figure(paper: str, said: Any, forms: Mapping[str, PaperForm]) -> PaperFigure:
    said = named(said, "[[figure]]")
    id = text(said.get("id"), "[[figure]] id")
    _only(said, (*_SAID, *_DONE), f"the figure {id}")
    for each in ("quick", "full"):
        if each in said and said[each] not in forms:
            raise UsageError(f"the figure {id}: {nearest(str(said[each]), forms)}")
    if "quick" not in said and not said.get("later"):
        raise UsageError(f"the figure {id} has no quick form, and does not say why (later)")
    for need in said.get("needs", ()):
        if need.partition(" ")[0] not in _KINDS:
            raise UsageError(f"the figure {id} needs {need!r}: {nearest(need, _KINDS)}")
    return PaperFigure(
        paper,
        id,
        title=text(said.get("title"), f"the figure {id}: title"),
        varies=text(said.get("varies"), f"the figure {id}: varies"),
        finding=text(said.get("finding"), f"the figure {id}: finding"),
        values=said.get("values", {}),
        quick=forms.get(said.get("quick", "")),
        full=forms.get(said.get("full", "")),
        claims={each: read_claim(each) for each in said.get("claims", [])},
        needs=tuple(said.get("needs", ())),
        later=said.get("later", ""),
        limits=said.get("limits", ""),
        explained=said.get("explained", ""),
    )


def _only(said: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for name in said:
        if name not in known:
            raise UsageError(f"there is no {name!r} in {where}: {nearest(name, known)}")


def _check_columns(figure: PaperFigure) -> None:
    """Raise UsageError if a claim names columns that its figure does not have, in either form."""
    if figure.lacking:
        return
    for form in filter(None, (figure.quick, figure.full)):
        varied = [column.varied for column in form.sweep().columns if not column.again]
        for said, claim in figure.claims.items():
            try:
                for order in orders(claim):
                    sides = [side for side in (order.left, order.right) if side.figure is not None]
                    found = [chosen(varied, side.columns) for side in sides]
                    if len(found) > 1:
                        paired_columns(*found)
            except UsageError as error:
                raise UsageError(f"the figure {figure.id}, {said!r}: {error}") from error
