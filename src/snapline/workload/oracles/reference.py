"""Judges a dataflow that has no oracle: compares its output with that of runs without failures.

Rows are compared as multisets. If the output is that of a run without failures, row by row, all is well.
Where a dataflow's output depends on the order in which its inputs come together (a running count, say:
which record gets which number is free) runs without failures differ, too. Then the output is compared in
whatever is the same in all of them (`views.py`): every count is there, every record was counted.

Two more checks keep that honest. Before something is called wrong, more orders of input are tried, because
what was the same in three runs may have been so by chance. And before something is called right, the
dataflow is broken on purpose: if the comparison would not show that, the answer is unknown.

Rows are told apart by 64-bit hashes: that two different ones of a billion look equal has a chance of 3 %,
and that this hides a fault, next to none.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal, TypeAlias

import numpy as np

from snapline.batch import Batch
from snapline.core.guarantee import Guarantee
from snapline.dataflow.state.hashing import Hashes
from snapline.validate.judged import Answer
from snapline.workload.common.base import Problem
from snapline.workload.oracles.verdict import LIMIT, Problems, rows_of
from snapline.workload.oracles.views import (
    Names,
    RowMultiset,
    SinkTable,
    View,
    hashes_of,
    steady_views,
    whole,
)

Output: TypeAlias = Mapping[str, Batch]
"""The rows of each sink."""

_Tables: TypeAlias = Mapping[str, SinkTable]

ORDERS = (3, 6, 11)
"""The most orders of input that are tried; more than the first few only if the output differs."""

ATTEMPTS = 3
"""How often the dataflow is broken in one way before the judge is found to be blind to it."""

_EMPTY = Batch({}, 0)


@dataclass(frozen=True, slots=True)
class Break:
    """One way to break the dataflow on purpose, to see whether the judge would notice."""

    says: str  # what happens then: "'totals' lost its state"
    harm: Literal["state", "lack", "excess"]  # state is lost; input is lost; input comes twice
    #: the outputs without and with it, of the same order of input; None with it: the dataflow raises
    outputs: Callable[[int], tuple[Output, Output | None]]  # of an attempt

    def counts(self, level: Guarantee) -> bool:
        """Whether a guarantee level forbids this mishap."""
        allowed = {"lack": Guarantee.AT_MOST_ONCE, "excess": Guarantee.AT_LEAST_ONCE}
        return allowed.get(self.harm) is not level


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a comparison at one guarantee level."""

    kept: Answer
    problems: tuple[Problem, ...] = ()
    views: tuple[str, ...] = ()  # what was compared, where that is not every row as it is
    undecided: str | None = None  # why nothing can be said


class Comparer:
    """Compares an output with references: with `reference(0)`, and with others only if that differs."""

    def __init__(
        self,
        found: Output,
        reference: Callable[[int], Output],
        keys: Sequence[Names] = (),
        breaks: Sequence[Break] = (),
    ) -> None:
        self._reference = cache(lambda order: _tables(reference(order)))
        self._breaks = breaks
        self._keys = keys
        first = self._reference(0)
        self._found = {sink: SinkTable(found.get(sink, _EMPTY)) for sink in first}
        self._views = self._choose()
        self._broken = cache(self._break)

    def _choose(self) -> dict[str, list[View]]:
        """The views of each sink: all columns if the references agree in them, else those that do agree."""
        views = {sink: [whole(self._columns(sink))] for sink in self._found}
        if all(_identical(self._found[s].batch, t.batch) for s, t in self._reference(0).items()):
            return views
        for orders in ORDERS:
            references = [self._reference(order) for order in range(orders)]
            for sink in self._found:
                tables = [reference[sink] for reference in references]
                if any(table.batch.length for table in tables):
                    views[sink] = steady_views(tables, self._keys)
            if not any(self._differs(sink, view) for sink in views for view in views[sink]):
                break
        return views

    def _columns(self, sink: str) -> Names:
        """The columns of a sink, from whichever of both outputs has rows."""
        return tuple(self._reference(0)[sink].batch.columns or self._found[sink].batch.columns)

    def _differs(self, sink: str, view: View) -> bool:
        return not self._reference(0)[sink].seen(view).same(self._found[sink].seen(view))

    def at(self, level: Guarantee) -> Comparison:
        """Compare the outputs as far as a guarantee level demands."""
        findings = Problems(level)
        for sink, view in self._used(level):
            right, found = self._reference(0)[sink].seen(view), self._found[sink].seen(view)
            if not right.same(found):
                _hold(findings, sink, found, right, view)
        views = self._partial(level)
        if findings.problems:
            return Comparison("no", tuple(findings.problems), views)
        if not any(table.batch.length for table in self._found.values()):
            return Comparison("unknown", undecided="nothing came out: there is nothing to judge")
        if views and (why := self._too_little(level, views)):
            because = f"the output depends on the order in which its inputs come together: {why}"
            return Comparison("unknown", views=views, undecided=because)
        return Comparison("yes", views=views)

    def _too_little(self, level: Guarantee, views: Sequence[str]) -> str | None:
        """Why comparing only what all references agree in would prove nothing; None if it proves enough."""
        seen = {sink for sink, _ in self._used(level)}
        if unseen := [f"'{sink}'" for sink in self._views if sink not in seen]:
            return f"runs without failures differ, too, in all that is known of {_listed(unseen)}"
        blind = [b.says for b in self._breaks if b.counts(level) and not self._notices(level, b)]
        if not blind:
            return None
        return f"what does not ({'; '.join(views)}) would be the same if {' or if '.join(blind)}"

    def _used(self, level: Guarantee) -> Iterator[tuple[str, View]]:
        for sink, views in self._views.items():
            for view in views:
                if view.for_every_level or level is Guarantee.EXACTLY_ONCE:
                    yield sink, view

    def _partial(self, level: Guarantee) -> tuple[str, ...]:
        """What is compared of sinks whose rows are not compared as a whole, as text."""
        used: dict[str, list[View]] = {sink: [] for sink in self._views}
        for sink, view in self._used(level):
            used[sink].append(view)
        return tuple(
            f"of '{sink}' {_listed([view.words for view in views])}"
            for sink, views in used.items()
            if whole(self._columns(sink)) not in views
        )

    def _notices(self, level: Guarantee, harm: Break) -> bool:
        """Whether the comparison shows this break, or the break changes nothing."""
        attempts = [partial(self._broken, harm, attempt) for attempt in range(ATTEMPTS)]
        if any(self._shows(level, *attempt()) for attempt in attempts):
            return True
        return not any(_changed(*attempt()) for attempt in attempts)

    def _shows(self, level: Guarantee, plain: _Tables, broken: _Tables | None) -> bool:
        if broken is None:
            return True
        findings = Problems(level)
        for sink, view in self._used(level):
            right, wrong = plain[sink].seen(view), broken[sink].seen(view)
            if not right.same(wrong):
                _hold(findings, sink, wrong, right, view)
            if findings.problems:
                return True
        return False

    def _break(self, harm: Break, attempt: int) -> tuple[_Tables, _Tables | None]:
        plain, broken = harm.outputs(attempt)
        return _tables(plain), None if broken is None else _tables(broken)


def _tables(output: Output) -> _Tables:
    return {sink: SinkTable(batch) for sink, batch in output.items()}


def _changed(plain: _Tables, broken: _Tables | None) -> bool:
    return broken is None or not all(_identical(plain[s].batch, broken[s].batch) for s in plain)


def _identical(these: Batch, those: Batch) -> bool:
    """Whether two outputs of a sink are the same multiset of rows, bit by bit."""
    if these.length != those.length or set(these.columns) != set(those.columns):
        return not these.length and not those.length
    columns = tuple(these.columns)
    return np.array_equal(np.sort(hashes_of(these, columns)), np.sort(hashes_of(those, columns)))


def _listed(words: Sequence[str]) -> str:
    """A list as text, cut after a few items."""
    shown, more = words[:6], len(words) - 6
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "") if shown else "nothing"


def _hold(findings: Problems, sink: str, here: RowMultiset, right: RowMultiset, view: View) -> None:
    """Report how what a view shows of a sink differs from what it should show."""
    before = len(findings.problems)
    expected, found = right.hashes(), here.hashes()
    shown, wrong = right.batch, here.batch
    for row, copies, others in _more(expected, found):
        because = f"it should come out {_times(copies)} and came out {_times(others)}"
        findings.lack("missing", _describe(sink, shown, right.exact, row), because)
    for row, copies, others in _more(found, expected):
        name = _describe(sink, wrong, here.exact, row)
        if others:
            because = f"it came out {_times(copies)} and should {_times(others)}"
            findings.excess("duplicate", name, because)
        else:
            findings.excess("invented", name, "it came out, and does not without failures")
    if len(findings.problems) == before and right.same_exact(here):
        names = [n for n in right.fractions if not right.same_fraction(here, n)]
        because = f"{' and '.join(names)} differ by more than rounding from runs without failures"
        findings.instead(f"{sink}: {view.words}", because)


def _more(these: Hashes, those: Hashes) -> Iterator[tuple[int, int, int]]:
    """Rows that occur more often here than there: the first row of each, and its count here and there."""
    values, rows, counts = np.unique(these, return_index=True, return_counts=True)
    sorted_those = np.sort(those)
    others = np.searchsorted(sorted_those, values, "right") - np.searchsorted(sorted_those, values)
    more = np.flatnonzero(counts > others)
    for at in more[np.argsort(rows[more])][:LIMIT].tolist():
        yield int(rows[at]), int(counts[at]), int(others[at])


def _describe(sink: str, batch: Batch, columns: Names, row: int) -> str:
    if not columns:
        return f"a row of {sink}"
    (values,) = rows_of(batch.slice(row, row + 1), *columns)
    said = ", ".join(f"{name}={value}" for name, value in zip(columns, values, strict=True))
    return f"{sink}({said})"


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")
