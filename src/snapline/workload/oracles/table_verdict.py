"""Compares a table of output with the right one as whole columns; only rows that differ become sentences.

The rows that came out are sorted by their identity once. What is right comes in pieces; each of its rows
is looked up there, and its values are compared with those of every row of the same identity. Rows that
pass are never looked at again. Of the others the first few of each kind are picked, in the order in which
`judge_rows` would meet them, and given to `judge_rows`: so the problems, and their sentences, are the same
as if it had seen everything.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from snapline.batch import Batch
from snapline.workload.common.generated import Ints
from snapline.workload.common.losses import Bools, Excuses, Stay
from snapline.workload.oracles.codes import Codes, ranges, same_rows
from snapline.workload.oracles.verdict import LIMIT, Problems, judge_rows, rows_of


@dataclass(frozen=True, slots=True)
class TableExcuses:
    """Which rows of a table need not come out, because a loss touched them, and which may come again."""

    excuses: Excuses
    stays: Callable[[Batch], Sequence[Stay]]  # of expected rows

    def touched(self, rows: Batch) -> Bools:
        """Whether a loss touched each of these rows."""
        return self.excuses.touched(*self.stays(rows))

    def repeated(self, rows: Batch) -> Bools:
        """Whether each of these rows may have come again."""
        return self.excuses.repeated(*self.stays(rows))


def judge_table(
    findings: Problems,
    expected: Iterable[Batch],
    found: Batch | None,
    identity: Sequence[str],
    values: Sequence[str],
    describe: Callable[..., str],
    optional: Iterable[Batch] = (),
    losses: TableExcuses | None = None,
) -> None:
    """Compare rows with the right ones: every identity comes out once, with the right values.

    `identity` are columns of whole numbers; no two rows that are expected share one. `describe` takes an
    identity, column by column. What is `optional` need not come out, nor what `losses` touched. What may
    have been put out by two lives of a task may be there more than once, if each of its rows is right.
    """
    columns = (*identity, *values)
    if found is None or not len(found):
        found = Batch(dict.fromkeys(columns, np.zeros(0, np.int64)), 0)
    table = _Table(found.select(*columns), identity, values)
    if losses is not None:
        expected, optional = list(expected), list(optional)
        table.excuse_repeats([*expected, *optional], losses)
    must, may = table.hold_all(expected, losses)
    may += [table.hold(piece, optional=True) for piece in optional]
    right, allowed = (
        dict(pair for piece in picked for pair in _pairs(piece, columns, len(identity)))
        for picked in (must, may)
    )
    rows = _pairs(table.differing([*must, *may]), columns, len(identity))
    judge_rows(findings, right, rows, lambda key: describe(*key), allowed)


def _pairs(batch: Batch, columns: Sequence[str], identity: int) -> list[tuple[Any, Any]]:
    return [(row[:identity], row[identity:]) for row in rows_of(batch, *columns)]


class _Table:
    """What came out, sorted by identity."""

    def __init__(self, found: Batch, identity: Sequence[str], values: Sequence[str]) -> None:
        self._found: Final = found
        self._identity: Final = identity
        self._values: Final = values
        self._codes: Final = Codes([found[name] for name in identity])
        self._order: Final = np.argsort(self._codes.own, kind="stable")
        ordered = self._codes.own[self._order]
        new = np.ones(len(ordered), np.bool_)
        np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
        self._starts: Final = np.flatnonzero(new)  # of the rows of each identity, in that order
        self._copies: Final = np.diff(self._starts, append=len(ordered))
        self._heads: Final = ordered[self._starts]  # the number of each identity
        self._known: Final = np.zeros(len(self._heads), np.bool_)  # expected
        self._repeated = self._earliest(np.flatnonzero(self._copies > 1))
        self._missing = self._wrong = 0  # how many of each kind were picked

    def _earliest(self, heads: Ints) -> Ints:
        """The first few of these identities, in the order in which they came out."""
        return heads[np.argsort(self._order[self._starts[heads]])[:LIMIT]]

    def _find(self, piece: Batch) -> tuple[Ints, Ints]:
        """Where each of these identities stands among the heads, and how often it came out."""
        codes = self._codes.of([piece[name] for name in self._identity])
        if not len(self._heads):
            return codes, np.zeros(len(codes), np.int64)
        at = np.minimum(np.searchsorted(self._heads, codes), len(self._heads) - 1)
        return at, np.where(self._heads[at] == codes, self._copies[at], 0)

    def _came(self, at: Ints, copies: Ints, piece: Batch) -> tuple[Ints, Bools]:
        """Which rows of a piece came out, one entry for each time, and whether with the right values."""
        here = np.flatnonzero(copies)
        rows = np.repeat(here, copies[here])
        came = self._found.take(self._order[ranges(self._starts[at[here]], copies[here])])
        return rows, same_rows(piece.take(rows), came, self._values)

    def excuse_repeats(self, expected: Iterable[Batch], losses: TableExcuses) -> None:
        """Hold it against no row that it came more than once, if it may, and was right each time."""
        excused = np.zeros(len(self._heads), np.bool_)
        for piece in expected:
            at, copies = self._find(piece)
            several = np.flatnonzero(copies > 1)
            some, at, copies = piece.take(several), at[several], copies[several]
            may = losses.repeated(some)
            rows, same = self._came(at, copies, some)
            may[rows[~same]] = False
            excused[at[may]] = True
            losses.excuses.account(again=int((copies[may] - 1).sum()))
        self._repeated = self._earliest(np.flatnonzero((self._copies > 1) & ~excused))

    def hold(self, piece: Batch, *, optional: bool = False) -> Batch:
        """Compare what came out with a piece of what is right; return the rows that are to be reported."""
        at, copies = self._find(piece)
        rows, same = self._came(at, copies, piece)
        self._known[at[copies > 0]] = True
        lacking = np.ones(len(piece), np.bool_)
        lacking[rows[same]] = False
        wrong = np.flatnonzero(lacking & (copies > 0))
        repeated = np.flatnonzero((copies > 1) & np.isin(at, self._repeated))
        if optional:  # only in excess, and so in the order in which it came out
            few = np.flatnonzero(np.isin(at, self._earliest(at[wrong])) & (copies > 0))
        else:
            missing = np.flatnonzero(copies == 0)[: LIMIT - self._missing]
            wrong = wrong[: LIMIT - self._wrong]
            self._missing += len(missing)
            self._wrong += len(wrong)
            few = np.concatenate([missing, wrong])
        return piece.take(np.union1d(few, repeated))

    def hold_all(
        self, expected: Iterable[Batch], losses: TableExcuses | None
    ) -> tuple[list[Batch], list[Batch]]:
        """Hold all that is right; return what is to be reported: of what must come out, and what may."""
        if losses is None:
            return [self.hold(piece) for piece in expected], []
        must, may = [], []
        for piece in expected:
            touched = losses.touched(piece)
            free = piece.take(touched)
            lost = np.count_nonzero(self._find(free)[1] == 0)
            losses.excuses.account(lost=int(lost), of=len(piece))
            must.append(self.hold(piece.take(~touched)))
            may.append(self.hold(free, optional=True))
        return must, may

    def differing(self, picked: Sequence[Batch]) -> Batch:
        """The rows that came out for the picked identities, and for the first ones nobody expected."""
        heads = [self._earliest(np.flatnonzero(~self._known))]
        for piece in picked:
            at, copies = self._find(piece)
            heads.append(at[copies > 0])
        chosen = np.unique(np.concatenate(heads))
        rows = self._order[ranges(self._starts[chosen], self._copies[chosen])]
        return self._found.take(np.sort(rows))
