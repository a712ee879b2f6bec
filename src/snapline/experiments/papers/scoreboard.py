"""The scoreboard of a paper: one row for every figure and table, with what became of it here."""

from dataclasses import dataclass
from typing import Any

from snapline.experiments.papers.catalogue import Paper, PaperFigure
from snapline.experiments.papers.verdicts import (
    ClaimVerdict,
    FigureRuns,
    Standing,
    judge_claims,
    worst,
)
from snapline.experiments.statistics import ALPHA


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """A figure or table of a paper, and what became of its claims."""

    figure: PaperFigure
    command: str
    standing: Standing
    why: str
    claims: tuple[ClaimVerdict, ...] = ()
    slots_are: str | None = None  # how they were started: `spark`, `processes`; None: not at all

    @property
    def tested(self) -> bool:
        """Whether anything was tested that could have been said to hold."""
        return any(part.sure for claim in self.claims for part in claim.parts)


@dataclass(frozen=True, slots=True)
class Scoreboard:
    """All rows of a paper."""

    paper: Paper
    rows: tuple[ScoreRow, ...]

    @property
    def expected(self) -> float:
        """How many rows are expected to have a claim that holds by chance alone, at most."""
        return ALPHA * sum(row.tested for row in self.rows)

    @property
    def last_line(self) -> str:
        """What a reader must know about all rows together."""
        tested = sum(row.tested for row in self.rows)
        standings = [row.standing for row in self.rows]
        counts = ", ".join(f"{standings.count(each)} {each}" for each in Standing)
        return (
            f"{counts}. "
            f"{tested} of {len(self.rows)} rows were tested with turns enough to be sure; at most "
            f"{self.expected:.2g} of them are expected to say that a claim holds by chance alone"
        )


def score(figure: PaperFigure, full: bool, runs: FigureRuns | str) -> ScoreRow:
    """The row of a figure from its runs, or from the reason why there are none."""
    apart = full and figure.full != figure.quick
    command = f"snapline sweep {figure.name}{' --full' if apart else ''}"
    if isinstance(runs, str):
        return ScoreRow(figure, command, Standing.UNTESTED, runs)
    if not figure.claims:
        why = "it is measured, and nothing is claimed about it"
        return ScoreRow(figure, command, Standing.UNTESTED, why)
    claims = tuple(judge_claims(figure.claims, runs))
    standing = worst([claim.standing for claim in claims])
    return ScoreRow(figure, command, standing, figure.limits, claims, runs.slots_are)


def as_document(board: Scoreboard) -> dict[str, Any]:
    """The scoreboard as JSON has it."""
    return {
        "paper": board.paper.name,
        "rows": [_row(row) for row in board.rows],
        "expected_by_chance": round(board.expected, 3),
    }


def _row(row: ScoreRow) -> dict[str, Any]:
    figure = row.figure
    return {
        "figure": figure.name,
        "title": figure.title,
        "command": row.command,
        "slots_are": row.slots_are,
        "finding": figure.finding,
        "values": dict(figure.values),
        "verdict": row.standing.value,
        "why": row.why,
        "claims": [
            {
                "claim": claim.text,
                "verdict": claim.standing.value,
                "comparisons": [
                    {
                        "comparison": str(part.order),
                        "verdict": part.standing.value,
                        "why": part.why,
                        "ours": part.ours,
                        "p": part.p,
                    }
                    for part in claim.parts
                ],
            }
            for claim in row.claims
        ],
    }


def ours(row: ScoreRow) -> list[str]:
    """What was measured for each comparison of a row, in words."""
    parts = [part for claim in row.claims for part in claim.parts]
    return [
        f"{part.order}: {part.standing}"
        f"{f'; {part.ours}' if part.ours else ''}{f'; {part.why}' if part.why else ''}"
        for part in parts
    ]


def as_markdown(board: Scoreboard) -> str:
    """The scoreboard as a page."""
    paper = board.paper
    lines = [
        f"# {paper.title}",
        "",
        f"{paper.authors}, {paper.year}. Measured there: {paper.settings}",
        "",
        "| figure | the paper | ours | verdict |",
        "|---|---|---|---|",
    ]
    for row in board.rows:
        mine = "<br>".join([*map(cell_text, ours(row)), *([cell_text(row.why)] if row.why else [])])
        title = f"**{cell_text(row.figure.id)}** {cell_text(row.figure.title)}<br>`{row.command}`"
        lines.append(f"| {title} | {cell_text(row.figure.finding)} | {mine} | **{row.standing}** |")
    return "\n".join([*lines, "", f"{board.last_line}.", ""])


def cell_text(text: str) -> str:
    """A text as a part of a table's cell."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
