"""About how long the runs of a paper's figures take, before they are made."""

from collections.abc import Iterable, Sequence

from snapline.experiments.papers.catalogue import PaperForm
from snapline.experiments.sweep_file import SPARK, SweepCell, SweepColumn
from snapline.experiments.sweep_progress import run_s, search_s

SESSION_S = 8.0
"""To start Spark, for each form."""


def form_s(form: PaperForm) -> float:
    """About how long all runs of a form take."""
    sweep = form.sweep()
    return runs_s([(form, sweep.cells)], sweep.columns)


def runs_s(
    missing: Iterable[tuple[PaperForm, Sequence[SweepCell]]], unknown: Iterable[SweepColumn]
) -> float:
    """About how long some runs of several forms take; what several of them need is made once.

    `unknown` are columns whose capacity has to be found, if their rate is a share of it.
    """
    searches = {
        column.capacity_key(""): search_s(column) for column in unknown if column.share is not None
    }
    runs: dict[str, float] = {}
    sessions = 0
    for form, cells in missing:
        sessions += bool(cells) and form.sweep().launcher == SPARK
        for cell in cells:
            runs[cell.key("")] = run_s(cell.column, form.each_s)
    return sum(runs.values()) + sum(searches.values()) + SESSION_S * sessions
