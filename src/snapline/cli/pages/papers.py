"""The scoreboard of a paper as a page shows it, from the directory of its sweep."""

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from snapline.report.charts.forest import ForestRow
from snapline.report.page.paper import SIMULATED, PaperPage, PaperRow

if TYPE_CHECKING:
    from snapline.experiments.papers.catalogue import Paper
    from snapline.experiments.papers.scoreboard import ScoreRow
    from snapline.experiments.papers.verdicts import OrderVerdict


def paper_of(path: Path) -> "Paper | None":
    """The paper whose figures a sweep has measured; None if it is a sweep of another kind."""
    from snapline.experiments.papers.catalogue import PAPERS, read_paper, read_shipped
    from snapline.experiments.sweep_directory import FILE

    try:
        text = (path / FILE).read_text(encoding="utf-8")
        if "figure" not in tomllib.loads(text):
            return None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return None  # whoever reads it as a sweep file says what is wrong
    shipped = next((name for name in PAPERS if read_shipped(name).text == text), None)
    return read_shipped(shipped) if shipped else read_paper(path.name, text)


def board_of(paper: "Paper", path: Path, *, full: bool = False) -> PaperPage:
    """Every figure of the paper with what became of it, as far as the sweep has measured it."""
    from snapline.experiments.papers.catalogue import OWN
    from snapline.experiments.papers.undertaking import Undertaking
    from snapline.experiments.sweep_directory import SweepDirectory, measuring_code

    figures, directory = list(paper.figures.values()), SweepDirectory(path)
    results = directory.results()
    code = measuring_code(results)
    board = Undertaking(paper, figures, full, directory, code).scoreboard()
    return PaperPage(
        paper.title,
        f"{paper.authors}, {paper.year}",
        paper.settings,
        [_row(row) for row in board.rows],
        board.last_line,
        results[-1]["environment"] if results else {},
        found="expected" if paper.name == OWN else "the paper found",
    )


def _row(row: "ScoreRow") -> PaperRow:
    parts = [part for claim in row.claims for part in claim.parts]
    simulated = row.slots_are == SIMULATED
    return PaperRow(
        row.figure.id,
        row.figure.title,
        row.figure.finding,
        row.figure.values,
        row.standing.value,
        row.why,
        row.command,
        row.slots_are,
        [(claim.text, _told(claim.standing.value, claim.parts)) for claim in row.claims],
        [_plotted(part, simulated) for part in parts if part.order.right.figure is not None],
        [_plotted(part, simulated) for part in parts if part.order.right.figure is None],
    )


def _told(standing: str, parts: "tuple[OrderVerdict, ...]") -> str:
    measured = "; ".join(f"{part.ours} ({part.why})" if part.why else part.ours for part in parts)
    return f"{standing}: {measured}" if measured.strip("; ") else standing


def _plotted(part: "OrderVerdict", simulated: bool) -> ForestRow:
    """A comparison on an axis: what is claimed of left over right, and what was measured or simulated."""
    order, measured = part.order, part.measured
    estimate, low, high = measured or (None, None, None)
    kinds = {"holds": "more" if order.sign.upwards else "less"}
    right = (
        "" if order.right.figure is None else f" / {_side(str(order.right), order.right.factor)}"
    )
    return ForestRow(
        f"{order.left}{right}",
        estimate,
        low,
        high,
        part.standing.value,
        kinds.get(part.standing.value, "same"),
        bound=order.right.factor,
        upwards=order.sign.upwards,
        simulated=simulated,
    )


def _side(text: str, factor: float) -> str:
    return text.partition("* ")[2] if factor != 1 else text
