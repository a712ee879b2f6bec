"""Whether operators survive a restore: each is captured and restored while it works, and has to go on.

Beside the operator of every task works a second instance, which gets the same steps. At random moments
(of a seed: the same every time) it is captured; at others it is thrown away, a fresh instance is restored
from what was captured, and gets again the steps since. What the two put out must be the same in every
step, as a multiset. So whatever `capture` forgets, `restore` ignores or the stored form cannot hold shows
itself at the operator that is to blame, whatever the operators behind it make of it.

Captures take the way of real ones (`checkpoints.py` and `restore.py` in `engine/slot`): the first one of
an instance is full, deltas follow it, and each is encoded when it is taken and decoded when it is needed.
It is encoded once more when it is done with: what was captured must never change, since real runs encode
it later.

An operator that does not do the same twice even without a restore cannot be judged in this way. It depends
on a clock or on dice, or keeps state outside its instances, where nothing captures it.
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from snapline.batch import Batch, Column, Words
from snapline.dataflow.chain import Chain
from snapline.dataflow.deploy import Deployment, TaskPlan
from snapline.dataflow.operators.guard import text_of
from snapline.dataflow.operators.operator import Capture, Operator
from snapline.dataflow.state.hashing import Hashes, hash_columns
from snapline.engine.reference.reference import Plain, Put, Stage, Step, reference_output
from snapline.engine.slot.checkpoints import Content
from snapline.engine.slot.task import NOTHING, WATERMARKS
from snapline.errors import OperatorFailed
from snapline.ids import TaskId
from snapline.storage.codec import decode_snapshot

GAP, GROWTH = 1.5, 1.07
"""Steps between two captures or restores, at first and on average; later ever more, to save time."""

DELTAS_MAX = 8

RESTORES_MIN, ROUNDS_MAX = 10, 4
"""A rehearsal is repeated, at other moments, until every task was restored so often; at most so many
rounds. Small input needs several, and is quick."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """What to tell the user of an operator that does not survive a restore, or that cannot be judged."""

    operator: str  # as people are to read it
    because: str  # one sentence about `it`
    certain: bool = True  # False: it may well survive, but nobody can tell


class _Broken(Exception):
    """An operator does not survive a restore; the text says how that was seen."""


@dataclass(slots=True)
class _Taken:
    """A capture, in memory and as it would be stored."""

    capture: Capture
    stored: bytes
    steps: list[tuple[Step, Put]] = field(default_factory=list)  # those until the next capture


def rehearse(deployment: Deployment, order: int) -> tuple[dict[str, Batch], Complaint | None]:
    """The output of each sink, as `reference_output` gives it, and the first complaint, if there is one."""
    outputs: dict[str, Batch] = {}
    restores: dict[TaskId, int] = {}
    for number in range(ROUNDS_MAX):
        rehearsal = _Rehearsal(f"{order}:{number}")
        outputs = reference_output(deployment, order, rehearsal.stage)
        for task, rehearsed in rehearsal.stages.items():
            if problem := rehearsed.end():
                return outputs, _complaint(deployment, order, task, problem)
            restores[task] = restores.get(task, 0) + rehearsal.restored[task].restores
        if min(restores.values(), default=RESTORES_MIN) >= RESTORES_MIN:
            break
    return outputs, None


class _Rehearsal:
    """All tasks but those that only pass records on, in one round."""

    def __init__(self, seed: str) -> None:
        self.seed = seed
        self.stages: dict[TaskId, _Rehearsed] = {}
        self.restored: dict[TaskId, _Restored] = {}

    def stage(self, plan: TaskPlan) -> Stage:
        """The stage of a task: an operator beside an instance that is restored, a source or sink alone."""
        operator = plan.operator()
        if type(operator) is Operator:
            return Plain(operator)  # a source or a sink
        restored = _Restored(plan, random.Random(f"{self.seed}:{plan.task}:rehearsal"))
        self.restored[plan.task] = restored
        self.stages[plan.task] = _Rehearsed(operator, restored)
        return self.stages[plan.task]


def _complaint(deployment: Deployment, order: int, task: TaskId, problem: str) -> Complaint:
    """Complain about a task, unless it does not even do the same twice without a restore."""
    twins: list[_Rehearsed] = []

    def stage(plan: TaskPlan) -> Stage:
        operator = plan.operator()
        if plan.task != task:
            return Plain(operator)
        twins.append(_Rehearsed(operator, _Twin(plan)))
        return twins[0]

    reference_output(deployment, order, stage)
    name = _name(deployment.plans[task])
    if not twins[0].end():
        return Complaint(name, problem)
    because = (
        "it does not do the same twice with the same input: it depends on a clock or on dice, or keeps "
        "state outside its instances (in its class, its module or a function), where nothing captures it"
    )
    return Complaint(name, because, certain=False)


def _name(plan: TaskPlan) -> str:
    operator = plan.operator()
    if isinstance(operator, Chain):
        names = [name for name, member in operator.members if type(member) is not Operator]
        return "operator " + " or ".join(f"'{name}'" for name in names)
    return f"operator '{plan.task.rpartition('/')[0]}'"


class _Second(Protocol):
    """The second instance of an operator, which has to do as the first one does."""

    def take(self, step: Step, right: Put) -> None:
        """Do a step for which the first instance put out `right`; raises _Broken if this one differs."""
        ...

    def end(self) -> None:
        """Check what is left to check after the last step; raises _Broken."""
        ...


class _Rehearsed:
    """An operator, and beside it a second instance, as long as that does the same."""

    def __init__(self, operator: Operator, second: _Second) -> None:
        self._first = Plain(operator)
        self._second = second
        self._problem: str | None = None

    def take(self, step: Step) -> Put:
        """Let both do the step; what the first one put out counts."""
        outputs = self._first.take(step)
        if self._problem is None:
            try:
                self._second.take(step, outputs)
            except _Broken as broken:
                self._problem = str(broken)
        return outputs

    def end(self) -> str | None:
        """What was wrong with the second instance, after the last step; None if nothing was."""
        if self._problem is None:
            try:
                self._second.end()
            except _Broken as broken:
                self._problem = str(broken)
        return self._problem


class _Twin:
    """An instance that is never captured nor restored."""

    def __init__(self, plan: TaskPlan) -> None:
        self._stage = Plain(plan.operator())

    def take(self, step: Step, right: Put) -> None:
        """Do the step; raises _Broken if something else comes out than of the first instance."""
        with _failing("it raises {}"):
            outputs = self._stage.take(step)
        if _difference(right, outputs) is not None:
            raise _Broken("it differs")

    def end(self) -> None:
        """Do nothing: each step was compared when it was done."""


class _Restored:
    """An instance that is captured and restored at random moments."""

    def __init__(self, plan: TaskPlan, dice: random.Random) -> None:
        self._plan = plan
        self._dice = dice
        self._stage = Plain(plan.operator())
        self._chain: list[_Taken] = []  # a full capture, and the deltas behind it
        self._gap: float = GAP
        self._wait = 1
        self.restores = 0  #: how often it was thrown away and restored from its captures

    def take(self, step: Step, right: Put) -> None:
        """Do a step; before it, the dice may have the operator captured or restored."""
        self._wait -= 1
        if self._wait <= 0:
            self._gap *= GROWTH
            self._wait = self._dice.randint(1, round(2 * self._gap))
            if self._chain and self._dice.random() < 0.5:
                self._restore()
            else:
                self._capture()
        self._compare(step, right)
        if self._chain:
            self._chain[-1].steps.append((step, right))

    def end(self) -> None:
        """Check that the last captures have not changed since they were taken."""
        self._check_unchanged(self._chain)

    def _capture(self) -> None:
        full = not self._chain or len(self._chain) > DELTAS_MAX
        with _failing("it raises {} when it is captured"):
            capture = self._stage.operator.capture(full=full)
        try:
            stored = _stored(capture)
            decode_snapshot(stored)
        except Exception as error:
            raise _Broken(f"it captures what cannot be stored: {_said(error)}") from error
        if full and not capture.full:
            raise _Broken("it was asked for a full capture, and gives a delta")
        if capture.full:
            self._check_unchanged(self._chain)
            self._chain = []
        self._chain.append(_Taken(capture, stored))

    def _restore(self) -> None:
        """Throw the instance away, and go on from one of its captures."""
        self._check_unchanged(self._chain)
        last = self._dice.randint(1, len(self._chain))
        kept, later = self._chain[:last], self._chain[last - 1 :]
        captures = [_loaded(taken.stored) for taken in kept]
        self._stage = Plain(self._plan.operator())
        self.restores += 1
        with _failing("it raises {} when it is restored"):
            self._stage.operator.restore(captures)
        self._chain = []  # the first capture of an instance is full
        for taken in later:
            for step, right in taken.steps:
                self._compare(step, right)

    def _compare(self, step: Step, right: Put) -> None:
        where = "restored" if self.restores else "captured"
        with _failing(f"it raises {{}} once it was {where}"):
            outputs = self._stage.take(step)
        difference = _difference(right, outputs)
        if difference is not None:
            raise _Broken(f"it does not go on as before once it was {where}: {difference}")

    def _check_unchanged(self, chain: Sequence[_Taken]) -> None:
        for taken in chain:
            try:
                unchanged = _stored(taken.capture) == taken.stored
            except Exception:
                unchanged = False
            if not unchanged:
                raise _Broken(
                    "it changes what it has captured afterwards, while that is being written: "
                    "capture must return copies"
                )


def _stored(capture: Capture) -> bytes:
    """The bytes of a snapshot with this capture, made as the engine makes them."""
    parts = {**capture.parts, WATERMARKS: NOTHING}
    return Content(replace(capture, parts=parts), b"", ())()


def _loaded(stored: bytes) -> Capture:
    loaded = decode_snapshot(stored)
    parts = {name: part for name, part in loaded.parts.items() if name != WATERMARKS}
    return Capture(loaded.full, parts)


@contextmanager
def _failing(story: str) -> Iterator[None]:
    """Make _Broken of whatever code of the user's raises, SystemExit too: it must not end the judge."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _Broken(story.format(_said(error))) from error


def _said(error: BaseException) -> str:
    if isinstance(error, OperatorFailed):  # a chain says which of its members it was
        return error.cause
    return f"{type(error).__name__}: {text_of(error)}"


def _difference(right: Put, outputs: Put) -> str | None:
    """In what two outputs of one step differ, if they do: their order is free."""
    if len(right) == len(outputs) and all(map(_equal, right, outputs)):
        return None
    for name in dict.fromkeys([*(n for n, _ in right), *(n for n, _ in outputs)]):
        these = [batch for n, batch in right if n == name and batch.length]
        those = [batch for n, batch in outputs if n == name and batch.length]
        expected, found = _hashes(these), _hashes(those)
        if len(expected) == len(found) and (np.sort(expected) == np.sort(found)).all():
            continue
        missing = _only(these, expected, found)
        extra = _only(those, found, expected)
        said = [f"it should put out {missing}"] * bool(missing) + [f"it puts out {extra}"] * bool(
            extra
        )
        return " and ".join(said) or "a row comes out more or less often"
    return None


def _equal(these: tuple[str, Batch], those: tuple[str, Batch]) -> bool:
    """Whether two batches are the same, row by row: a quick test, which usually says yes."""
    (name, right), (other, batch) = these, those
    return (
        name == other
        and right.length == batch.length
        and right.columns.keys() == batch.columns.keys()
        and all(map(_same, right.columns.values(), map(batch.columns.__getitem__, right.columns)))
    )


def _same(column: Column, other: Column) -> bool:
    if isinstance(column, np.ndarray) and isinstance(other, np.ndarray):
        return column.dtype == other.dtype and np.array_equal(column, other)
    if isinstance(column, Words) and isinstance(other, Words):
        return column.values == other.values and np.array_equal(column.codes, other.codes)
    return False


def _hashes(batches: Sequence[Batch]) -> Hashes:
    """One hash per row, by the names and values of its columns in any order."""
    parts = [
        hash_columns([batch.columns[name] for name in sorted(batch.columns)])
        + np.uint64(len(batch.columns))
        if batch.columns
        else np.zeros(batch.length, np.uint64)
        for batch in batches
    ]
    return np.concatenate([np.zeros(0, np.uint64), *parts])


def _only(batches: Sequence[Batch], these: Hashes, those: Hashes) -> str:
    """The first row of `batches` whose hash is not among `those`, as text; empty if there is none."""
    rows = np.flatnonzero(~np.isin(these, those))
    if not len(rows):
        return ""
    at = int(rows[0])
    for batch in batches:
        if at < batch.length:
            values = batch.slice(at, at + 1).to_pydict()
            return "(" + ", ".join(f"{name}={value[0]}" for name, value in values.items()) + ")"
        at -= batch.length
    return ""
