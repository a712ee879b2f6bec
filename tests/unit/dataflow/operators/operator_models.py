"""Stateful operators in plain Python, and the check that holds the real ones against them.

A story is a list of steps: batches, watermarks, captures and crashes. After a crash a fresh operator takes
back the captures, as they were written, and repeats the steps since the last one; it must give the same
outputs again, and it goes on in the place of the one that crashed.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from snapline.batch import Batch
from snapline.batch_form import decode, encode
from snapline.dataflow.operators.operator import Capture, Groups, Operator, Outputs

Row = dict[str, Any]
Rows = dict[str, list[Row]]


@dataclass(frozen=True)
class Take:
    port: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Watermark:
    time: int


@dataclass(frozen=True)
class Checkpoint:
    full: bool


@dataclass(frozen=True)
class Crash:
    pass


Step = Take | Watermark | Checkpoint | Crash


def stories(rows: dict[str, st.SearchStrategy[Row]]) -> st.SearchStrategy[list[Step]]:
    """Stories with these kinds of rows per port; batches are small or some dozens of rows."""
    sizes = st.sampled_from([1, 3, 40])
    takes = [
        st.builds(
            Take,
            st.just(port),
            sizes.flatmap(lambda n, s=s: st.lists(s, min_size=1, max_size=n).map(tuple)),
        )
        for port, s in rows.items()
    ]
    watermarks = st.builds(Watermark, st.integers(-30, 60))
    checkpoints = st.builds(Checkpoint, st.booleans())
    return st.lists(st.one_of(*takes, watermarks, checkpoints, st.just(Crash())), max_size=25)


def readable(outputs: Outputs) -> dict[str, list[str]]:
    """Outputs as multisets of records: the order of records within a batch is free."""
    found = defaultdict(list)
    for name, batch in outputs:
        for row in batch.rows():
            found[name].append(repr(sorted(zip(batch.columns, row, strict=True))))
    return {name: sorted(rows) for name, rows in found.items()}


def expected(rows: Rows) -> dict[str, list[str]]:
    return {
        name: sorted(repr(sorted(row.items())) for row in rs) for name, rs in rows.items() if rs
    }


class Written:
    """A capture as it is stored: the bytes at the time of the capture must stay true for ever.

    Of parts in groups the groups that the capture `before` had are still there, unless they were dropped.
    """

    def __init__(self, capture: Capture, before: "Written | None" = None) -> None:
        self.capture = capture
        self.parts = {name: encode(part) for name, part in capture.parts.items()}
        self.groups: dict[str, dict[int, bytes]] = {}
        for name, changed in capture.groups.items():
            kept = dict(before.groups.get(name, {})) if before is not None else {}
            for number in changed.dropped:
                kept.pop(number, None)
            kept |= {number: encode(rows) for number, rows in changed.written.items()}
            self.groups[name] = dict(sorted(kept.items()))

    def read(self) -> Capture:
        assert self.parts == {name: encode(part) for name, part in self.capture.parts.items()}
        for name, changed in self.capture.groups.items():
            for number, rows in changed.written.items():
                assert self.groups[name][number] == encode(rows)
        groups = {
            name: Groups({number: decode(raw) for number, raw in kept.items()})
            for name, kept in self.groups.items()
        }
        parts = {name: decode(raw) for name, raw in self.parts.items()}
        return Capture(self.capture.full, parts, groups=groups)


def check(
    make: Callable[[], Operator],
    model: "Model",
    story: Sequence[Step],
    columns: Callable[[Sequence[Row]], Batch],
) -> None:
    """Tell a story to an operator and to its model; it ends with two crashes, each after a delta."""
    operator, written = make(), list[Written]()
    since: list[tuple[Step, dict[str, list[str]]]] = []
    for step in [*story, Checkpoint(full=False), Crash(), Checkpoint(full=False), Crash()]:
        match step:
            case Checkpoint(full):
                whole = full or not written
                capture = operator.capture(full=whole)
                assert capture.full == whole
                taken = Written(capture, written[-1] if written else None)
                written = [taken] if whole else [*written, taken]
                since = []
            case Crash():
                before, operator, witness = operator, make(), make()
                for again in (operator, witness):
                    again.restore([capture.read() for capture in written])
                    for done, outputs in since:
                        assert readable(perform(again, done, columns)) == outputs
                assert contents(witness) == contents(before)
            case _:
                outputs = readable(perform(operator, step, columns))
                assert outputs == expected(model.perform(step))
                since.append((step, outputs))


def contents(operator: Operator) -> dict[str, list[str]]:
    """The whole state, readable. An operator that was asked forgets what its next delta was to hold."""
    operator.by_group(None)
    return readable(list(operator.capture(full=True).parts.items()))


def perform(operator: Operator, step: Step, columns: Callable[[Sequence[Row]], Batch]) -> Outputs:
    if isinstance(step, Watermark):
        return operator.on_watermark(step.time)
    assert isinstance(step, Take)
    return operator.process(step.port, columns(step.rows))


def plain(rows: Sequence[Row]) -> Batch:
    return Batch.of(**{name: [row[name] for row in rows] for name in rows[0]})


class Model:
    """An operator that takes one row at a time."""

    def perform(self, step: Step) -> Rows:
        found: Rows = defaultdict(list)
        if isinstance(step, Watermark):
            self.watermark(step.time, found)
        elif isinstance(step, Take):
            for row in step.rows:
                self.take(step.port, row, found)
        return found

    def take(self, port: str, row: Row, found: Rows) -> None:
        raise NotImplementedError

    def watermark(self, time: int, found: Rows) -> None:
        pass


def pick(row: Row, *names: str) -> Row:
    return {name: row[name] for name in names}


class CountModel(Model):
    def __init__(self, *keys: str) -> None:
        self.keys = keys
        self.counts: dict[Any, int] = defaultdict(int)

    def take(self, port: str, row: Row, found: Rows) -> None:
        key = tuple(row[k] for k in self.keys)
        self.counts[key] += 1
        found["out"].append({**pick(row, *self.keys, "time"), "count": self.counts[key]})


class FoldModel(Model):
    """The running sum and the previous price."""

    def __init__(self) -> None:
        self.values: dict[Any, tuple[int, int]] = {}

    def take(self, port: str, row: Row, found: Rows) -> None:
        total, last = self.values.get(row["key"], (0, -1))
        total = (3 * total + row["price"] - last) % 1009  # the order within a key matters
        self.values[row["key"]] = (total, row["price"])
        found["out"].append({**pick(row, "key", "time"), "total": total, "last": row["price"]})


class WindowModel(Model):
    SIZE = 10

    def __init__(self, lateness: int = 0) -> None:
        self.lateness = lateness
        self.now = -(10**9)

    def window(self, row: Row) -> int:
        return row["time"] // self.SIZE * self.SIZE

    def closed(self, window: int) -> bool:
        return window + self.SIZE + self.lateness <= self.now

    def watermark(self, time: int, found: Rows) -> None:
        self.now = max(self.now, time)


class WindowCountModel(WindowModel):
    def __init__(self, lateness: int = 0) -> None:
        super().__init__(lateness)
        self.counts: dict[Any, int] = defaultdict(int)

    def take(self, port: str, row: Row, found: Rows) -> None:
        window = self.window(row)
        if self.closed(window):
            found["late"].append(row)
            return
        self.counts[row["key"], window] += 1
        count = self.counts[row["key"], window]
        found["out"].append({**pick(row, "key", "time"), "window": window, "count": count})


class AggregateModel(WindowModel):
    def __init__(self, lateness: int = 0) -> None:
        super().__init__(lateness)
        self.rows: dict[Any, list[Row]] = defaultdict(list)

    def take(self, port: str, row: Row, found: Rows) -> None:
        window = self.window(row)
        if self.closed(window):
            found["late"].append(row)
        else:
            self.rows[window, row["key"]].append(row)

    def watermark(self, time: int, found: Rows) -> None:
        super().watermark(time, found)
        for window, key in [which for which in self.rows if self.closed(which[0])]:
            rows = self.rows.pop((window, key))
            prices = [row["price"] for row in rows]
            found["out"].append(
                {
                    "key": key,
                    "window": window,
                    "n": len(rows),
                    "total": sum(prices),
                    "least": min(prices),
                    "most": max(prices),
                    "prices": prices,
                    "time": max(row["time"] for row in rows),
                }
            )


class JoinModel(Model):
    def __init__(self) -> None:
        self.sides: dict[str, list[Row]] = {"left": [], "right": []}

    def take(self, port: str, row: Row, found: Rows) -> None:
        self.sides[port].append(row)
        for other in self.sides["right" if port == "left" else "left"]:
            left, right = (row, other) if port == "left" else (other, row)
            if left["id"] == right["owner"] and self.meet(left, right):
                found["out"].append(self.pair(left, right))

    def meet(self, left: Row, right: Row) -> bool:
        return True

    def pair(self, left: Row, right: Row) -> Row:
        return {
            **left,
            "owner": right["owner"],
            "name_right": right["name"],
            "time_right": right["time"],
        }


class WindowJoinModel(JoinModel, WindowModel):
    def __init__(self) -> None:
        JoinModel.__init__(self)
        self.lateness = 0
        self.now = -(10**9)

    def take(self, port: str, row: Row, found: Rows) -> None:
        if self.closed(self.window(row)):
            found[f"late-{port}"].append(row)
        else:
            super().take(port, row, found)

    def meet(self, left: Row, right: Row) -> bool:
        return self.window(left) == self.window(right)

    def pair(self, left: Row, right: Row) -> Row:
        return {**super().pair(left, right), "window": self.window(left)}
