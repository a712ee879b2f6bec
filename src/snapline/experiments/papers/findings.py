"""The page of findings: what became of every figure of the papers, read from the results that are kept.

It is made of `results/` and the files of the papers alone: equal files give equal bytes. A figure whose
full form was measured is read from that, otherwise from its short form; one that was not measured says so.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from snapline.experiments.papers.catalogue import (
    OWN,
    PAPERS,
    Paper,
    PaperFigure,
    read_shipped,
)
from snapline.experiments.papers.kept import KeptForm, read_kept
from snapline.experiments.papers.scoreboard import Scoreboard, ScoreRow, cell_text, ours, score
from snapline.experiments.papers.verdicts import FigureRuns, Standing
from snapline.experiments.sweep import FOREIGN_MAX
from snapline.experiments.sweep_file import SIMULATED
from snapline.experiments.sweep_table import is_proved
from snapline.wording import plural

COMMAND: Final = "snapline findings --to docs/findings.md"

NOT_TAKEN: Final = "not measured yet"

_HEADINGS: Final = {
    Standing.HOLDS.value: "What holds here",
    Standing.INDICATED.value: "What looks as it was claimed, and is not sure",
    Standing.FAILS.value: "What does not hold here",
    Standing.UNTESTED.value: "What cannot be tested here, or was not decided",
    NOT_TAKEN: "What was not measured yet",
}
"""What can become of a figure, with the heading above those of which it became."""

_TOP: Final = f"""# Findings

Which findings of the papers hold on Snapline, which do not, and why; and what nobody has published.
This page is made of the files in [results/](../results/README.md) by `{COMMAND}`: do not
change it by hand. What the verdicts mean is in [experiments.md](experiments.md#what-the-verdicts-mean); a
paper's order is never a goal, and that a claim does not hold here is a result like any other. Every row has
its command, which makes the runs again on your machine."""


@dataclass(frozen=True, slots=True)
class Found:
    """A paper with what became of its figures, and the results that this was read from."""

    board: Scoreboard
    forms: tuple[KeptForm, ...]


def findings(results: Path, papers: Sequence[Paper] | None = None) -> list[Found]:
    """What became of every figure of these papers (all that are shipped). Raises UsageError."""
    return [_found(paper, results) for paper in papers or [read_shipped(name) for name in PAPERS]]


def as_page(found: Sequence[Found]) -> str:
    """The findings as a page."""
    lines = [_TOP, "", "## In short", "", *_counts(found), ""]
    for each in found:
        lines += [*_paper(each), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _found(paper: Paper, results: Path) -> Found:
    rows, forms = [], dict[str, KeptForm]()
    for figure in paper.figures.values():
        kept, full = _results_of(figure, results)
        if isinstance(kept, KeptForm):
            forms[kept.form] = kept
            row = score(figure, full, _runs(paper, figure, kept, full))
        else:
            row = score(figure, full, kept)
        rows.append(row)
    return Found(Scoreboard(paper, tuple(rows)), tuple(forms.values()))


def _results_of(figure: PaperFigure, results: Path) -> tuple[KeptForm | str, bool]:
    """The results of a figure, and whether they are those of its full form; or why there are none."""
    if figure.lacking:
        return figure.lacking, False
    other = ""
    for full in (True, False):
        form = figure.form(full)
        kept = None if form is None else read_kept(results, figure.paper, form.name)
        if form is None or kept is None:
            continue
        if kept.fits(form):
            return kept, full
        other = (
            f"; what is kept of {form.name} was measured with other settings, and has to be again"
        )
    return f"{NOT_TAKEN}{other}", False


def _runs(paper: Paper, figure: PaperFigure, kept: KeptForm, full: bool) -> FigureRuns | str:
    """The runs of a figure, or in words why they do not count."""
    for run in kept.runs:
        if not is_proved(run):
            return f"the output of {run['run']} is not proved right: {run['because']}"
    form = figure.form(full)
    assert form is not None
    sweep = form.sweep()
    columns = [column.varied for column in sweep.columns if not column.again]
    return FigureRuns(paper, columns, kept.runs, sweep.launcher)


def _counts(found: Sequence[Found]) -> Iterator[str]:
    """A table with a row for each paper: of how many of its figures became what."""
    yield f"| | {' | '.join(_HEADINGS)} |"
    yield f"|---|{'---|' * len(_HEADINGS)}"
    for each in found:
        paper, words = each.board.paper, [_became(row) for row in each.board.rows]
        counts = " | ".join(str(words.count(word)) for word in _HEADINGS)
        yield f"| [{paper.title}](#{_anchor(paper.title)}) | {counts} |"


def _became(row: ScoreRow) -> str:
    """What became of a figure, in a word: its verdict, but that it was not measured is none."""
    return NOT_TAKEN if row.why.startswith(NOT_TAKEN) else row.standing.value


def _anchor(title: str) -> str:
    """The name of a heading in an address, as it is made of its text."""
    kept = "".join(each for each in title.lower() if each.isalnum() or each in " -_")
    return kept.replace(" ", "-")


def _paper(found: Found) -> Iterator[str]:
    board = found.board
    paper = board.paper
    yield f"## {paper.title}"
    yield ""
    if paper.name == OWN:
        yield "Nobody has published these. What is claimed is what theory says, or what we expect."
    else:
        yield f"{paper.authors}, {paper.year}. Measured there: {paper.settings}."
    yield ""
    yield from _measured_on(found.forms)
    yield "| figure | verdict | command |"
    yield "|---|---|---|"
    for row in board.rows:
        name = f"**{row.figure.id}** {cell_text(row.figure.title)}"
        yield f"| {name} | **{_became(row)}**{_simulated(row)} | `{_command(row)}` |"
    yield ""
    yield f"{board.last_line}."
    for word, heading in _HEADINGS.items():
        if rows := [row for row in board.rows if _became(row) == word]:
            yield ""
            yield f"### {heading}: {paper.name}"
            yield ""
            yield from (line for row in rows for line in _row(row))


def _simulated(row: ScoreRow) -> str:
    return " (simulated)" if row.slots_are == SIMULATED else ""


def _command(row: ScoreRow) -> str:
    form = row.figure.quick
    profile = " --profile profile.json" if form is not None and form.simulated else ""
    return f"{row.command}{profile}"


def _row(row: ScoreRow) -> Iterator[str]:
    """One figure: what the paper found, what was measured here, and why that is so."""
    figure = row.figure
    yield f"- **{figure.id}**, {_plain(figure.title)}. *{figure.source}:* {_plain(figure.finding)}."
    for told in ours(row):
        yield f"  - *here:* {_plain(told)}"
    if row.why and row.why != NOT_TAKEN:
        yield f"  - *{'but' if row.claims else 'why'}:* {_plain(row.why)}"
    if row.claims and figure.explained:
        yield f"  - *because:* {_plain(figure.explained)}"


def _plain(text: str) -> str:
    """A text in a list: what would be taken for a mark of the page is not."""
    return cell_text(text).replace("*", "\\*").replace("_", "\\_")


def _measured_on(forms: Iterable[KeptForm]) -> Iterator[str]:
    """When, where and with which code the results were measured, once for all forms that agree."""
    said: dict[str, list[str]] = {}
    for kept in forms:
        told = f"`{kept.form}` ({_counted(kept)})"
        said.setdefault(_where(kept), []).append(told)
    for where, names in said.items():
        yield f"Measured here {where}: {', '.join(names)}."
        yield ""


def _counted(kept: KeptForm) -> str:
    runs = plural(len(kept.runs), "run")
    disturbed = sum(float(run.get("foreign", 0)) > FOREIGN_MAX for run in kept.runs)
    some = f", of {kept.planned}" if len(kept.runs) < kept.planned else ""
    busy = f", {disturbed} of them while others used the machine" if disturbed else ""
    return f"{runs}{some}{busy}"


def _where(kept: KeptForm) -> str:
    first, last = kept.days
    days = f"on {first}" if first == last else f"from {first} to {last}"
    known = kept.environment
    commit = known.get("commit")
    code = f"commit `{str(commit)[:12]}`" if commit else f"code `{known.get('code')}`"
    if commit and known.get("dirty"):
        code += " with changes"
    return f"{days} on {known.get('cores')} cores ({known.get('cpu')}), {code}"
