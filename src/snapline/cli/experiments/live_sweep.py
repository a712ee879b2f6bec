"""The live page of a sweep: follows its progress and its results, and shows them in a browser."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snapline.cli.experiments.forest_rows import forest_row
from snapline.cli.experiments.search_progress import MAIN_FIGURES, minutes
from snapline.cli.terminal.console import tell_live_page
from snapline.errors import SnaplineError, UsageError
from snapline.report.charts.forest import ForestRow
from snapline.report.live.follower import JournalFollower
from snapline.report.live.sweep_page import SweepView, SweptGroup, SweptRun, sweep_parts
from snapline.report.run.reported import ReportedRun
from snapline.rundir.directory import RunDirectory

if TYPE_CHECKING:
    from snapline.experiments.sweep_progress import (
        KeptProgress,
        PlannedColumn,
        PlannedRun,
        SweepState,
    )

Results = Mapping[str, Mapping[str, Any]]

TICK_S = 1.0
"""So often the page is made anew although nothing was written, because times pass."""


class SweepFollower:
    """Reads how a sweep goes on, from the files of its directory; it changes none of them."""

    def __init__(self, path: Path) -> None:
        from snapline.experiments.sweep_directory import SweepDirectory
        from snapline.experiments.sweep_progress import read_state

        self.name = path.name
        self._directory = SweepDirectory(path)
        if (state := read_state(path)) is None:
            raise UsageError(
                f"{path} does not say how it goes on: leave --live out, or start the sweep again"
            )
        self._state = state
        self._results: dict[str, dict[str, Any]] = {}
        self._present: JournalFollower | None = None
        self._seen: dict[Path, int] = {}  #: when files and folders were last changed
        self._looked_s = 0.0

    def advance(self) -> bool:
        """Read what is new; return whether the page has to change."""
        from snapline.experiments.sweep_directory import CELLS
        from snapline.experiments.sweep_progress import FILE, read_state

        path, changed = self._directory.path, False
        if self._has_changed(path / FILE):
            before, self._state = self._state, read_state(path) or self._state
            changed = self._state != before
        if self._has_changed(path / CELLS):
            changed |= self._read_results()
        changed |= self._follow_present()
        if time.monotonic() - self._looked_s >= TICK_S:
            self._looked_s = time.monotonic()
            changed |= self._state.is_at_work
        return changed

    def _has_changed(self, path: Path) -> bool:
        """Whether a file was replaced, or a folder got files, since the last time."""
        try:
            at = path.stat().st_mtime_ns
        except OSError:
            return False
        before = self._seen.get(path)
        # A change right behind another one may leave the time as it is, so one look more is taken.
        self._seen[path] = at if time.time_ns() - at > 50_000_000 else -1
        return before != at

    def _read_results(self) -> bool:
        from snapline.experiments.sweep_directory import CELLS

        there = {file.stem for file in (self._directory.path / CELLS).glob("*.json")}
        wanted = [run.key for run in self._state.runs if run.key not in self._results]
        found = {key: self._directory.read(key) for key in wanted if key in there}
        news = {key: result for key, result in found.items() if result is not None}
        self._results |= news
        return bool(news)

    def _follow_present(self) -> bool:
        """Follow the journals of the run that is made now, if there is one."""
        now = self._state.at_work
        name = now.run if now is not None else None
        if name is None:
            gone, self._present = self._present is not None, None
            return gone
        try:
            if self._present is None or self._present.name != name:
                self._present = JournalFollower(RunDirectory.open(self._directory.runs, name))
            return self._present.advance()
        except SnaplineError:  # it was removed meanwhile, because others disturbed it
            self._present = None
            return True

    def parts(self) -> dict[str, str]:
        """The parts of the page as they are now."""
        return sweep_parts(self._view(self._state))

    def _view(self, state: "SweepState") -> SweepView:
        from snapline.experiments.sweep_progress import times_of

        now_s, working = time.time(), state.is_at_work
        standings = {run.key: self._swept(run, state, working) for run in state.runs}
        counts = Counter(each.standing for each in standings.values())
        names = dict.fromkeys(column.group for column in state.columns)
        groups = [_group(name, state, standings, self._results) for name in names]
        left_s = state.left_s(times_of(self._results), now_s)
        present = self._reported()
        return SweepView(
            self.name,
            working,
            _standing(state, working, now_s),
            groups,
            counts,
            list(_times(state, working, left_s, now_s)),
            list(self._problems(state)),
            present if working else None,
        )

    def _reported(self) -> ReportedRun | None:
        """The run that is made now, as far as it can be read."""
        try:
            return None if self._present is None else self._present.reported()
        except SnaplineError:  # it was removed since we looked, because others disturbed it
            self._present = None
            return None

    def _swept(self, run: "PlannedRun", state: "SweepState", working: bool) -> SweptRun:
        from snapline.experiments.sweep_table import is_proved

        now = state.at_work
        if (result := self._results.get(run.key)) is not None:
            told = f"{result['run']}: {result['kept']} in {result['elapsed_s']:.0f} s"
            return SweptRun("done" if is_proved(result) else "unproved", told)
        if working and now is not None and now.key == run.key:
            return SweptRun("running", now.run or "")
        if run.key in state.failed:
            return SweptRun("failed", state.failed[run.key])
        return SweptRun("waiting", "")

    def _problems(self, state: "SweepState") -> Iterator[str]:
        from snapline.experiments.sweep_table import is_proved

        for run in state.runs:
            result = self._results.get(run.key)
            if result is None and run.key in state.failed:
                yield f"turn {run.turn}, {run.label} failed: {state.failed[run.key]}"
            elif result is not None and not is_proved(result):
                yield f"{result['run']} is not proved right: {result['because']}"


def _standing(state: "SweepState", working: bool, now_s: float) -> str:
    """What the sweep does now."""
    now = state.at_work
    if not working:
        return (
            "'snapline report' makes a page of it that can be kept, and starting it again goes on"
        )
    if now is None:
        return "the next run is being prepared"
    since = f"for {minutes(max(0.0, now_s - now.since_s))}"
    if now.key is None:
        return f"the capacity for {now.label} is being found, {since}"
    turn = next((run.turn for run in state.runs if run.key == now.key), None)
    again = f", try {now.attempt} because others used the machine" if now.attempt > 1 else ""
    return f"turn {turn}, {now.label}, {since}{again}"


def _times(
    state: "SweepState", working: bool, left_s: float, now_s: float
) -> Iterator[tuple[str, str, str]]:
    end_s = now_s if working else state.ended_s
    if end_s is not None:
        since = time.strftime("since %H:%M", time.localtime(state.begun_s))
        yield "so far", minutes(end_s - state.begun_s), since
    if left_s > 0:
        until = time.strftime("until %H:%M", time.localtime(now_s + left_s))
        yield "about left", minutes(left_s), until if working else "if it is started again"


def _group(
    name: str, state: "SweepState", standings: Mapping[str, SweptRun], results: Results
) -> SweptGroup:
    runs: dict[str, list[SweptRun]] = {}
    for run in sorted(state.runs, key=lambda run: run.turn):
        if run.group == name:
            runs.setdefault(run.label, []).append(standings[run.key])
    columns = [column for column in state.columns if column.group == name]
    mine = [results[run.key] for run in state.runs if run.group == name and run.key in results]
    first = next(column.label for column in columns if not column.again)
    shown = {column.label: runs[column.label] for column in columns if column.label in runs}
    return SweptGroup(name, shown, first, _ratios(columns, mine))


def _ratios(
    columns: "Sequence[PlannedColumn]", results: Sequence[Mapping[str, Any]]
) -> dict[str, list[ForestRow]]:
    """The main figures of every column over those of the first, as far as both are done."""
    from snapline.experiments.sweep_table import against_first, floors

    noise = floors(results)
    own = [column for column in columns if not column.again]
    compared = against_first(results, [column.varied for column in own])
    found: dict[str, list[ForestRow]] = {name: [] for name in MAIN_FIGURES}
    for column, (_, figures) in zip(own[1:], compared, strict=True):
        for each in figures:
            name = each.figure.name
            if name in found:
                found[name].append(forest_row(column.label, each, noise.get(name)))
    return {name: rows for name, rows in found.items() if rows}


@contextmanager
def shown_live(
    path: Path, *, live: bool, begin: "Callable[[], KeptProgress]"
) -> "Iterator[KeptProgress]":
    """Keep the progress of a sweep in its directory; if it is asked for, with a page beside it."""
    if not live:
        with begin() as progress:
            yield progress
        return
    from snapline.report.live.process import LiveProcess

    page: LiveProcess | None = None
    try:
        with begin() as progress:
            page = LiveProcess(partial(SweepFollower, path))
            tell_live_page(page.url)
            yield progress
    finally:
        if page is not None:
            page.stop()
