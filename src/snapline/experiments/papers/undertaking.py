"""Makes the runs of a paper's figures, and reads its scoreboard from them.

The runs of each form are a sweep, and all sweeps of a paper have one directory. A result is kept under what
it was measured with, so figures that need the same run, or the same capacity, share it; and the scoreboard
has what was measured for other figures before.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snapline.experiments.papers.catalogue import CAPACITY, Paper, PaperFigure, PaperForm
from snapline.experiments.papers.estimate import runs_s
from snapline.experiments.papers.scoreboard import Scoreboard, score
from snapline.experiments.papers.verdicts import FigureRuns
from snapline.experiments.sweep import (
    NEEDS_PROFILE,
    Plan,
    Simulator,
    SweepTeller,
    carry_out,
    check_sweep,
)
from snapline.experiments.sweep_directory import SweepDirectory
from snapline.experiments.sweep_table import is_proved


@dataclass(frozen=True, slots=True)
class Undertaking:
    """Some figures of a paper that are to be measured, in their short or their full form."""

    paper: Paper
    figures: Sequence[PaperFigure]
    full: bool
    directory: SweepDirectory
    code: str | None = None  # of which code the results are read; None: of this
    simulator: Simulator | None = None  # None: forms that are simulated are left out

    @property
    def forms(self) -> dict[str, PaperForm]:
        """The forms that have to be run, each once, in the order in which figures need them."""
        wanted = [each.form(self.full) for each in self.figures if not each.lacking]
        able = self.simulator is not None
        return {f.name: f for f in wanted if f is not None and (able or not f.simulated)}

    @property
    def plans(self) -> dict[str, Plan]:
        """The runs of each form. Raises UsageError if this version cannot make them."""
        return {name: self._plan(form) for name, form in self.forms.items()}

    def _plan(self, form: PaperForm) -> Plan:
        return Plan(form.sweep(), self.directory, self.code)

    def left_s(self, plans: Mapping[str, Plan]) -> float:
        """About how long the runs of some forms take that have no result yet."""
        missing, unknown = [], []
        for name, plan in plans.items():
            done = plan.done
            missing.append((self.forms[name], [c for k, c in plan.keys.items() if k not in done]))
            unknown += plan.unknown
        return runs_s(missing, unknown)

    def check(self, runs: Path) -> None:
        """Raise UsageError if any run could not be made; nothing is started or written."""
        for plan in self.plans.values():
            check_sweep(plan.sweep, runs)

    def carry_out(self, teller: Callable[[str, Plan], SweepTeller]) -> bool:
        """Make all runs that have no result yet, and return whether all have one now.

        The directory must be claimed. `teller` is asked, for each form, who is told how it goes on.
        """
        whole = [
            carry_out(plan, teller(name, plan), self.simulator) for name, plan in self.plans.items()
        ]
        return all(whole)  # one form that failed keeps no other from being run

    def reads(self, figure: PaperFigure, form: str) -> bool:
        """Whether a figure is read from the runs of a form."""
        found = figure.form(self.full)
        return found is not None and found.name == form and not figure.lacking

    @property
    def proved(self) -> bool:
        """Whether the output of every run that was made is proved right."""
        return all(is_proved(result) for form in self.results.values() for result in form)

    @property
    def results(self) -> dict[str, list[dict[str, Any]]]:
        """The results that are there, by form."""
        return {name: results_of(plan) for name, plan in self.plans.items()}

    def scoreboard(self) -> Scoreboard:
        """A row for every figure of the paper, whether it was asked for now or not."""
        rows = [
            score(figure, self.full, self._runs_of(figure))
            for figure in self.paper.figures.values()
        ]
        return Scoreboard(self.paper, tuple(rows))

    def _runs_of(self, figure: PaperFigure) -> FigureRuns | str:
        """The runs of a figure, or in words why there are none that count."""
        if figure.lacking:
            return figure.lacking
        form = figure.form(self.full)
        if form is None:
            return "it has no full form" if self.full else "it has no quick form: say --full"
        plan = self._plan(form)
        found = results_of(plan)
        if not found:
            return NEEDS_PROFILE if form.simulated else "it was not measured yet"
        for result in found:
            if not is_proved(result):
                return f"the output of {result['run']} is not proved right: {result['because']}"
        columns = [column.varied for column in plan.sweep.columns if not column.again]
        return FigureRuns(self.paper, columns, found, plan.sweep.launcher)


def results_of(plan: Plan) -> list[dict[str, Any]]:
    """The results of a plan, with what varies as its own columns call it, and with the capacity."""
    done, found = plan.done, []
    for key, cell in plan.keys.items():
        if key not in done:
            continue
        column, result = cell.column, dict(done[key])
        result |= {"varied": dict(column.varied), "again": column.again}
        if column.share is not None:
            capacity = round(result["spec"]["rate"] / column.share)
            result["metrics"] = {**result["metrics"], CAPACITY: capacity}
        found.append(result)
    return found
