"""What the tests of bounded loss share: recorded runs, and a plain model of what a loss can touch.

The model looks at one row at a time, with the scalar form of the routing hash and lists of Python. It says
which slots a row and the records behind it passed, when the first of them came, and until when they were
needed. A row is *outside* if no lost slot is among them, or all of it came after the slot was back, or all
of it was put out long before the slot was struck.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from snapline.batch import Batch, Varlen
from snapline.chaos.strikes import Strike
from snapline.engine.job import Job
from snapline.journal.loss_happenings import TaskLoss
from snapline.kernels.routing import target_of
from snapline.loss.bound import Allowances, Bound, struck_by
from snapline.loss.declared import Lost, settle
from snapline.sim import run
from snapline.sim.case import Case
from snapline.sim.run import Outcome, simulate
from snapline.workload.abs.model import STAGES
from snapline.workload.common.base import Problem
from snapline.workload.common.generated import PARTITION_BITS
from snapline.workload.counting.model import records as counted_records
from snapline.workload.lineage.model import lineage_of, shape_of
from snapline.workload.nexmark import model as nexmark
from snapline.workload.nexmark.dashboard_oracle import sliding_ms
from snapline.workload.nexmark.oracle import DISORDER_MS
from snapline.workload.nhop.model import edges
from snapline.workload.reachability.model import events as graph_events

Row = dict[str, Any]

SLOTS = 3


@dataclass(frozen=True)
class Visit:
    """Where a row and the records behind it were, and when."""

    slots: frozenset[int]
    first: int
    until: int


@dataclass(frozen=True)
class RecordedRun:
    """A simulated run that may lose something, with all that its judge is given."""

    case: Case
    job: Job
    public: Mapping[str, Batch]
    final: Mapping[str, Mapping[str, Batch]]
    declared: tuple[TaskLoss, ...]
    strikes: tuple[Strike, ...]
    allowed: Allowances
    outcome: Outcome

    def judged(self, **changes: Any) -> Sequence[Problem]:
        """What is wrong with the run, or with a changed one."""
        it = replace(self, **changes)
        given = (it.public, it.final, it.declared, it.strikes, it.allowed)
        return run.found_wrong(it.case, it.job, *given)

    @cached_property
    def losses(self) -> tuple[Lost, ...]:
        """The declared losses, with the blows behind them."""
        return settle(self.declared, self.bound).losses

    @cached_property
    def bound(self) -> Bound:
        return Bound(self.job, struck_by(self.strikes, self.job), self.allowed)

    def is_outside(self, visit: Visit) -> bool:
        """Whether no loss can have touched this."""
        lag = self.bound.lag_ms
        return all(
            loss.slot not in visit.slots
            or visit.first > loss.to_ms + lag
            or visit.until < loss.death_ms - lag
            for loss in self.losses
        )

    def came_once(self, visit: Visit, lingers_ms: int | None = None) -> bool:
        """Whether no two lives of a task can have put this out; a slot that lingers does so for a while.

        The checkpoints of drawn policies are at most 600 ms apart, and count 400 ms later at most.
        """
        return all(
            loss.slot not in visit.slots
            or visit.until < loss.death_ms - self.bound.lag_ms - 1_000
            or visit.first > loss.death_ms + (lingers_ms or 0)
            for loss in self.losses
        )


def recorded(monkeypatch: Any, case: Case, **options: Any) -> RecordedRun:
    """Run a case, and keep what its judge was given; whatever the verdict."""
    kept: dict[str, Any] = {}
    judge = run.found_wrong

    def keeping(
        case: Case,
        job: Job,
        public: Any,
        final: Any,
        declared: Any,
        strikes: Any,
        allowed: Allowances,
    ) -> Sequence[Problem]:
        kept.update(job=job, public=public, final=final, allowed=allowed)
        kept.update(declared=tuple(declared), strikes=tuple(strikes))
        return judge(case, job, public, final, declared, strikes, allowed)

    with monkeypatch.context() as patch:
        patch.setattr(run, "found_wrong", keeping)
        outcome = simulate(case, **options)
    return RecordedRun(case, outcome=outcome, **kept)


# Rows.


def rows_of(batch: Batch) -> list[Row]:
    """A batch as rows of plain values; lists stay lists."""
    columns = {
        name: column.to_list() if hasattr(column, "to_list") else column.tolist()
        for name, column in batch.columns.items()
    }
    return [{name: values[n] for name, values in columns.items()} for n in range(len(batch))]


def batch_of(rows: Sequence[Row], like: Batch) -> Batch:
    """Rows as a batch with the columns of another one."""

    def column(name: str) -> Any:
        values, model = [row[name] for row in rows], like[name]
        if isinstance(model, np.ndarray):
            return np.array(values, model.dtype)
        kind = model.kind if isinstance(model, Varlen) else "str"
        return Varlen.of(kind, values)

    return Batch({name: column(name) for name in like.columns}, len(rows))


def partition_of(record: int) -> int:
    return (record >> PARTITION_BITS) % (1 << 15)


# Where rows were, workload by workload.


@dataclass(frozen=True)
class RowModel:
    """What is known of the rows of a workload's sink."""

    sink: str
    visit: Callable[[Row], Visit]
    values: tuple[str, ...] = ()  # columns of numbers that are right or wrong, and name no row
    lists: tuple[
        tuple[str, str], ...
    ] = ()  # (list of ids, its count), where rows name their events
    visit_id: Callable[[int], Visit] = field(default=lambda event: Visit(frozenset(), 0, 0))
    by_cell: bool = False  # rows of equal key and time cannot be told apart


def _slots(*keys: int) -> set[int]:
    return {target_of(int(key), SLOTS) for key in keys}


def _at(slots: set[int], times: Sequence[int], until: int | None = None) -> Visit:
    return Visit(frozenset(slots), min(times), max(times) if until is None else until)


def _q1(case: Case) -> RowModel:
    def visit(row: Row) -> Visit:
        return _at({partition_of(row["id"])}, [row["time"]])

    return RowModel("results", visit, ("price", "auction", "bidder"))


def _habits(case: Case) -> RowModel:
    def visit(row: Row) -> Visit:
        return _at({partition_of(row["id"])} | _slots(row["bidder"]), [row["time"]])

    return RowModel("results", visit, ("price", "bidder"))


def _counts(case: Case, sink: str, key: str, records: Batch) -> RowModel:
    at: dict[tuple[int, int], list[int]] = {}
    for row in rows_of(records.select("id", key, "time")):
        at.setdefault((row[key], row["time"]), []).append(row["id"])

    def visit(row: Row) -> Visit:
        behind = {partition_of(each) for each in at[row[key], row["time"]]}
        return _at(behind | _slots(row[key]), [row["time"]])

    return RowModel(sink, visit, (key,), by_cell=True)


def _abs(case: Case) -> RowModel:
    def visit(row: Row) -> Visit:
        keys = _slots(*(row[stage.key] for stage in STAGES))
        return _at({partition_of(row["id"])} | keys, [row["time"]])

    return RowModel("results", visit, tuple(stage.key for stage in STAGES))


def _pairs(case: Case, disorder: int) -> RowModel:
    lots = nexmark.auctions(case.params, disorder).everything().select("id", "auction", "time")
    people = nexmark.persons(case.params, disorder).everything().select("id", "person", "time")
    opened = {row["auction"]: row for row in rows_of(lots)}
    registered = {row["person"]: row for row in rows_of(people)}

    def visit(row: Row) -> Visit:
        lot, person = opened[row["auction"]], registered[row["person"]]
        slots = {partition_of(lot["id"]), partition_of(person["id"])} | _slots(row["person"])
        times = [lot["time"], person["time"]]
        return _at(slots, times, max(times) + disorder)

    return RowModel("results", visit, ("reserve",))


def _lineage(case: Case, *, with_posts: bool) -> RowModel:
    shape = shape_of(case.params)
    events = {row["id"]: row for row in rows_of(lineage_of(case.params, with_posts=with_posts))}

    def visit_id(event: int) -> Visit:
        row = events[event]
        end = row["time"] - row["time"] % shape.window_ms + shape.window_ms
        closed = max(row["arrival"], end + 3 * shape.lateness_ms + shape.bound_ms)
        return _at({row["partition"]} | _slots(row["resource"]), [row["arrival"]], closed)

    lists = (("get_ids", "gets"), ("post_ids", "posts")) if with_posts else (("ids", "count"),)
    return RowModel("counts", lambda row: _at(set(), [0]), lists=lists, visit_id=visit_id)


def _nhop(case: Case) -> RowModel:
    known = {row["id"]: row for row in rows_of(edges(case.params).everything())}

    def visit(row: Row) -> Visit:
        steps = [known[edge] for edge in row["edges"]]
        slots = {partition_of(step["id"]) for step in steps}
        slots |= _slots(*(step["start"] for step in steps), *(step["end"] for step in steps))
        return _at(slots, [step["time"] for step in steps])

    return RowModel("walks", visit, ("start", "end", "first", "time"))


def _reachability(case: Case) -> RowModel:
    known = {row["id"]: row for row in rows_of(graph_events(case.params).everything())}
    gone = {row["target"] for row in known.values() if row["target"] >= 0}

    def visit(row: Row) -> Visit:
        steps = [known[row["source"]], *(known[link] for link in row["links"])]
        slots = {partition_of(step["id"]) for step in steps} | _slots(*row["nodes"])
        if any(step["id"] in gone for step in steps):  # it need not come out at all
            return Visit(frozenset(range(SLOTS)), 0, 1 << 40)
        return _at(slots, [step["time"] for step in steps])

    return RowModel("paths", visit, ("time",))


def _since(case: Case, sink: str, value: str, before_ms: int) -> RowModel:
    """Rows behind which there are records of every slot, the first of them so long before their time."""

    def visit(row: Row) -> Visit:
        return Visit(frozenset(range(SLOTS)), row["time"] - before_ms, row["time"] + 100)

    return RowModel(sink, visit, (value,), by_cell=True)


def _asked(case: Case, key: str | None) -> RowModel:
    """Pairs of the joins, whose stored rows come from one partition; without a key all are in one task."""

    def visit(row: Row) -> Visit:
        slots = {0, partition_of(row["id"])} | _slots(row[key] if key else 0)
        return _at(slots, [row["time"], row["time_right"]], row["time"] + 100)

    return RowModel("pairs", visit, ("number",))


def model_of(case: Case) -> RowModel:
    """The model of the workload of a case."""
    params = case.params
    known: dict[str, Callable[[], RowModel]] = {
        "q1": lambda: _q1(case),
        "counting": lambda: _counts(case, "counts", "key", counted_records(params).everything()),
        "q12": lambda: _counts(case, "results", "bidder", nexmark.bids(params).everything()),
        "abs": lambda: _abs(case),
        "q3": lambda: _pairs(case, 0),
        "q8": lambda: _pairs(case, DISORDER_MS),
        "sst": lambda: _lineage(case, with_posts=False),
        "mst": lambda: _lineage(case, with_posts=True),
        "q5": lambda: _since(case, "results", "count", sliding_ms(params)),
        "q6": lambda: _since(case, "results", "average", 1 << 40),
        "q7": lambda: _since(case, "results", "price", sliding_ms(params)),
        "habits": lambda: _habits(case),
        "fab": lambda: _since(case, "quality", "predicted", 1 << 40),
        "sjoin": lambda: _asked(case, None),
        "gjoin": lambda: _asked(case, "key"),
        "nhop": lambda: _nhop(case),
        "reachability": lambda: _reachability(case),
    }
    return known[case.workload]()


# What is done to an output.


def repeated_once(
    it: RecordedRun, model: RowModel, rng: random.Random, lingers_ms: int
) -> Mapping[str, Batch] | None:
    """The output with one record repeated that cannot have come again; None: there is none."""
    sink = it.public[model.sink]
    rows = rows_of(sink)

    def once(visit: Visit) -> bool:
        outside = it.is_outside(visit) or not model.by_cell
        return outside and it.came_once(visit, lingers_ms)

    if not model.lists:
        able = [row for row in rows if once(model.visit(row))]
        changed = [*rows, dict(rng.choice(able))] if able else None
    else:
        found = [each for each in _ids(rows, model) if once(model.visit_id(each[3]))]
        changed = _with_id_again(rows, *rng.choice(found)) if found else None
    return None if changed is None else {**it.public, model.sink: batch_of(changed, sink)}


def _with_id_again(rows: list[Row], n: int, name: str, count: str, event: int) -> list[Row]:
    row = {**rows[n], name: [*rows[n][name], event], count: rows[n][count] + 1}
    return [*rows[:n], row, *rows[n + 1 :]]


def tampered(
    what: str, it: RecordedRun, model: RowModel, rng: random.Random
) -> Mapping[str, Batch] | None:
    """The output with one record removed, repeated or moved outside of all losses; None: there is none."""
    sink = it.public[model.sink]
    rows = rows_of(sink)
    if model.lists:
        changed = _change_ids(what, it, model, rows, rng)
    else:
        changed = _change_rows(what, it, model, rows, rng)
    return None if changed is None else {**it.public, model.sink: batch_of(changed, sink)}


def _change_rows(
    what: str, it: RecordedRun, model: RowModel, rows: list[Row], rng: random.Random
) -> list[Row] | None:
    anywhere = what != "removed" and not model.by_cell  # these are never excused
    able = [n for n, row in enumerate(rows) if anywhere or it.is_outside(model.visit(row))]
    if not able:
        return None
    n = rng.choice(able)
    if what == "removed":
        return rows[:n] + rows[n + 1 :]
    if what == "repeated":
        return [*rows, dict(rows[n])]
    moved = dict(rows[n])
    name = rng.choice(model.values)
    moved[name] += rng.choice((-1, 1, 2))
    return [*rows[:n], moved, *rows[n + 1 :]]


def _change_ids(
    what: str, it: RecordedRun, model: RowModel, rows: list[Row], rng: random.Random
) -> list[Row] | None:
    able = list(_ids_outside(it, model, rows, anywhere=what == "repeated"))
    if not able:
        return None
    n, name, count, event = rng.choice(able)
    rows = [dict(row) for row in rows]
    if what != "repeated":
        rows[n][name] = [each for each in rows[n][name] if each != event]
        rows[n][count] -= 1
    if what != "removed":
        others = [m for m, row in enumerate(rows) if row["resource"] != rows[n]["resource"]]
        if not others:
            return None
        m = rng.choice([n, *others]) if what == "repeated" else rng.choice(others)
        rows[m][name] = [*rows[m][name], event]
        rows[m][count] += 1
    empty = [name for name, _ in model.lists]
    return [row for row in rows if any(row[each] for each in empty)]


def _ids_outside(
    it: RecordedRun, model: RowModel, rows: list[Row], *, anywhere: bool
) -> Iterator[tuple[int, str, str, int]]:
    for n, name, count, event in _ids(rows, model):
        if anywhere or it.is_outside(model.visit_id(event)):
            yield n, name, count, event


def _ids(rows: list[Row], model: RowModel) -> Iterator[tuple[int, str, str, int]]:
    for n, row in enumerate(rows):
        for name, count in model.lists:
            for event in row[name]:
                yield n, name, count, event
