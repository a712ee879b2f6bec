"""About how long the runs of a paper's figures take, before they are made."""

from collections.abc import Iterable, Sequence

from snapline.experiments.capacity import expected_tries
from snapline.experiments.pace import window_of
from snapline.experiments.papers.catalogue import PaperForm
from snapline.experiments.sweep_file import SIMULATED, SweepCell, SweepColumn

RUN_S = 6.0
"""What a run takes beside its input: to start its slots, to end, and to be judged."""

SLOT_S = 0.7
"""What each slot beyond the second adds to that, on two cores."""

SIMULATED_S = 0.3
"""About how long a simulated run takes for each of its slots."""

SESSION_S = 8.0
"""To start Spark, for each form."""

FULL_SPEED_S = 6.0
"""How long a search for a capacity runs at full speed, to know where to begin."""


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
        column.capacity_key(""): _search_s(column) for column in unknown if column.share is not None
    }
    runs: dict[str, float] = {}
    sessions = 0
    for form, cells in missing:
        sessions += bool(cells) and not form.simulated
        for cell in cells:
            column = cell.column
            if column.launcher == SIMULATED:
                runs[cell.key("")] = SIMULATED_S * column.spec.slots
                continue
            runs[cell.key("")] = _beside_s(column) + _input_s(column, form.each_s)
    return sum(runs.values()) + sum(searches.values()) + SESSION_S * sessions


def _beside_s(column: SweepColumn) -> float:
    return RUN_S + SLOT_S * max(0, column.spec.slots - 2)


def _input_s(column: SweepColumn, each_s: float) -> float:
    return each_s if column.spec.rate == "max" else column.spec.duration_ms / 1000


def _search_s(column: SweepColumn) -> float:
    """A run at full speed, and then as many tries as it takes if none contradicts another."""
    window = window_of(column.spec.interval_ms, column.search.window_s)
    each_s = _beside_s(column) + window.end_s + 1
    return _beside_s(column) + FULL_SPEED_S + expected_tries(column.search) * each_s
