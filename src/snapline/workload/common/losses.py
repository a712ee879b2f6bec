"""What an oracle asks of losses that a run has declared: may a row be missing, be wrong, or come again?

A run that promises *bounded loss* declares what it lost: tasks, and when. An oracle knows which operators a
record passes, by which key it finds its task there, and how long what became of it waits there. It says so
in *stays*, whole columns at a time; `Excuses`, which knows where tasks ran and which of them were lost,
says which rows a loss may have touched. All else is judged as if nothing had been lost.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from snapline.batch import Column
from snapline.ids import Millis

Bools: TypeAlias = npt.NDArray[np.bool_]
Ints: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Stay:
    """Where rows, or the records behind them, were, and when: one place for each row.

    Times are those at which records were due, in milliseconds: nothing that a record causes is earlier.
    """

    #: the operators, in the order in which rows pass them without being shuffled in between
    operators: tuple[str, ...]
    #: what decides to which task of the first of them a row goes: the columns of its key ...
    key: Sequence[Column] | None
    partition: Ints | None  # ... or the partition of the source from which it comes
    first: Ints  # when the first record came that is part of the row
    last: Ints  # when the last one came
    until: Ints  # how long it was needed there: until the row, or what is made of it, was put out
    #: whether a record may come too late for its window, because nobody waited for a slot that was away
    timed: bool = False


def stay_of(
    operators: tuple[str, ...],
    at: Ints,
    *,
    key: Sequence[Column] | None = None,
    partition: Ints | None = None,
    until: Ints | None = None,
    timed: bool = False,
) -> Stay:
    """The stay of rows that came at one moment each, and were needed `until` then."""
    return Stay(operators, key, partition, at, at, at if until is None else until, timed)


class Excuses(Protocol):
    """The losses that a run has declared, and what they touched."""

    @property
    def nothing_lost(self) -> bool:
        """Whether no loss was declared."""
        ...

    @property
    def lag_ms(self) -> Millis:
        """How long it may take from when a record is due until it has passed a task."""
        ...

    def touched(self, *stays: Stay) -> Bools:
        """Whether a loss may have touched a row in any of its stays."""
        ...

    def late(self, *stays: Stay) -> Bools:
        """Whether a row was touched, or came so soon after a loss that time may have gone on without it."""
        ...

    def repeated(self, *stays: Stay) -> Bools:
        """Whether a row may have come again, because two lives of a task put it out."""
        ...

    def account(self, *, lost: int = 0, of: int = 0, free: int = 0, again: int = 0) -> None:
        """Take down that of so many expected rows so many are missing, so many need not be right, and
        that so many came again.
        """
        ...


class MayExcuse(Protocol):
    """Whoever may have been asked to judge bounded loss: the parameters of an oracle."""

    @property
    def excuses(self) -> Excuses | None:
        """What was lost; None: nobody asks for that."""
        ...


def losses_of(params: MayExcuse) -> Excuses | None:
    """The losses that an oracle has to heed; None if there are none."""
    excuses = params.excuses
    return None if excuses is None or excuses.nothing_lost else excuses
