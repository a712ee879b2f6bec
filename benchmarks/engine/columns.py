"""What the convenient things cost: a function per record, strings as keys, lists as columns.

    python -m benchmarks.engine.columns --repeats 3 --seconds 3

Each is a flow of its own, beside an equivalent one with numbers and whole columns; they take turns on two
slots as plain processes, under `aligned` with checkpoints every second. Joins keep every row, with its
strings or lists, in state and snapshots, and every record finds exactly one partner. A first run of each
tells how much input it needs for the time asked for, and does not count. Every run is judged: the number
of rows, and the sum over what is in them.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np

from benchmarks.common import real_run
from benchmarks.common.checks import CHUNK, Tally
from benchmarks.common.pages import Session, call, parser_of, table, with_spread
from benchmarks.common.real_run import Finished
from benchmarks.common.snapline_side import EVENT_MS, CountingSink, added, by_value, tally_of
from snapline.batch import Batch, Column, Varlen, Words
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.stream import Stream
from snapline.workload.common.base import Params
from snapline.workload.common.generated import Generated, Ints, draw

SINK = "results"
KEYS = 100_000
FEW_KEYS = 1_000  # a dictionary of words goes with every message
PILOT_RECORDS = 200_000
STRINGS = Varlen.of("str", [f"customer-{n:08d}" for n in range(KEYS)])
WORDS = tuple(f"customer-{n:08d}" for n in range(FEW_KEYS))
HOW = (
    "Two slots as plain processes, checkpoints every second. *us*: CPU time of all slots for 4,000 input",
    "records, their making included; *ratio*: of these, to the flow that it is compared with, in the same",
    "turn: **median** (lowest to highest). Joins: 100,000 keys (words: 1,000), every record is kept in",
    "state with all its columns and finds one partner. All outputs were right.",
)

Columns = Mapping[str, Column]
Keyed = Callable[[Ints], Column]


class Adding(CountingSink):
    """Counts rows, and adds up their values, codes and lists."""

    def count(self, batch: Batch) -> Tally:
        there = [batch[name] for name in ("value", "code", "a", "b", "c") if name in batch.columns]
        if "list" in batch.columns:
            there.append(batch["list"].compact().values)
        return Tally(len(batch), sum(int(column.sum()) for column in there) % 2**64)


# What a record has besides its key.


def value(keys: Ints) -> Columns:
    return {"value": keys * 3}


def three_numbers(keys: Ints) -> Columns:
    return {**value(keys), "a": keys, "b": keys + 1, "c": keys + 2}


def one_list(keys: Ints) -> Columns:
    items = (keys[:, None] + np.arange(3)).reshape(-1)
    return {**value(keys), "list": Varlen("list", np.arange(len(keys) + 1) * 3, items)}


# What a flow does before it joins.


def nothing(records: Stream) -> Stream:
    return records


def by_columns(records: Stream) -> Stream:
    return records.map(lambda batch: batch.with_columns(value=batch["value"] * 2 + 1))


def by_record(records: Stream) -> Stream:
    return records.map_records(lambda record: {**record, "value": record["value"] * 2 + 1})


def even(records: Stream) -> Stream:
    return records.filter(lambda batch: batch["value"] % 2 == 0)


@dataclass(frozen=True)
class Case:
    """A flow, and the one with which it is compared."""

    name: str
    base: str
    carried: Callable[[Ints], Columns] = value
    key: Keyed | None = None  # of numbers; without it nothing is joined
    steps: Callable[[Stream], Stream] = nothing
    keys: int = KEYS
    checked: Callable[[Ints], Ints] = lambda keys: (
        keys * 3
    )  # by key: what a row of output adds up to

    def records(self, params: Params) -> Generated:
        def fields(params: Params, partition: int, offsets: Ints) -> Columns:
            keys = draw(params, "key", partition, offsets, self.keys)
            return {"key": keys if self.key is None else self.key(keys), **self.carried(keys)}

        return Generated("records", params, fields, params.records)

    def partners(self, params: Params, key: Keyed) -> Generated:
        """One for every key."""

        def fields(params: Params, partition: int, offsets: Ints) -> Columns:
            keys = offsets * params.partitions + partition
            return {"key": key(keys), "code": keys * 7}

        return Generated("partners", params, fields, self.keys // params.partitions)

    def flow(self, params: Params) -> Dataflow:
        """The dataflow, with a sink that adds up."""
        flow = Dataflow("columns")
        stream = self.steps(flow.source(self.records(params), name="records"))
        if self.key is not None:
            partners = flow.source(self.partners(params, self.key), name="partners")
            stream = stream.key_by("key").join(partners.key_by("key"))
        stream.sink(SINK)
        nodes = flow.graph.nodes
        nodes[SINK] = replace(nodes[SINK], factory=lambda: Adding(""))
        return flow

    def expected(self, params: Params) -> Tally:
        """What the sink must have counted, from the keys alone."""
        tally = Tally(0, 0)
        for partition in range(params.partitions):
            for begin in range(0, params.records, CHUNK):
                offsets = np.arange(begin, min(begin + CHUNK, params.records))
                keys = draw(params, "key", partition, offsets, self.keys)
                kept = keys[keys % 2 == 0] if self.steps is even else keys
                tally = added(tally, Tally(len(kept), int(self.checked(kept).sum())))
        return tally


def joined(keys: Ints) -> Ints:
    """Value and code."""
    return keys * 10


def with_three(keys: Ints) -> Ints:
    """Value, code, and three numbers."""
    return keys * 10 + keys * 3 + 3


def mapped(keys: Ints) -> Ints:
    return keys * 6 + 1


def as_words(keys: Ints) -> Words:
    return Words(keys.astype(np.int32), WORDS)


def as_it_is(keys: Ints) -> Ints:
    return keys


INT, FEW, THREE = "join, integer key", "join, integer key, 1,000 keys", "join, 3 more numbers"
CASES = (
    Case("`map`, whole columns", "", steps=by_columns, checked=mapped),
    Case("`map_records`, per record", "`map`, whole columns", steps=by_record, checked=mapped),
    Case(INT, "", key=as_it_is, checked=joined),
    Case("join, string key", INT, key=STRINGS.take, checked=joined),
    Case(FEW, "", key=as_it_is, checked=joined, keys=FEW_KEYS),
    Case("join, words key", FEW, key=as_words, checked=joined, keys=FEW_KEYS),
    Case(THREE, "", three_numbers, as_it_is, even, checked=with_three),
    Case("join, a list of 3 numbers", THREE, one_list, as_it_is, even, checked=with_three),
)


def size(records: float, slots: int) -> Params:
    """So many records, all due at once."""
    return Params(1, slots, max(1, int(records / slots)), EVENT_MS, at_once=True)


def measure(case: Case, params: Params, asked: argparse.Namespace) -> Finished:
    """One run, judged."""
    flow, slots = by_value(case.flow(params)), params.partitions
    tally = Tally(0, 0)
    with real_run.finished(flow, slots, protocol=asked.protocol) as done:
        for _, rows in done.rows(SINK):
            tally = added(tally, tally_of(rows))
    if tally != case.expected(params):
        raise SystemExit(f"wrong output of {case.name}: {tally}, not {case.expected(params)}")
    return done


def measure_all(session: Session, asked: argparse.Namespace) -> dict[str, list[Finished]]:
    """All flows, in turns."""
    sizes: dict[str, Params] = {}
    for case in CASES:
        pilot = measure(case, size(PILOT_RECORDS, asked.slots), asked)
        sizes[case.name] = size(pilot.read / pilot.elapsed_s * asked.seconds, asked.slots)
    found: dict[str, list[Finished]] = defaultdict(list)
    for turn in range(asked.repeats):
        for case in CASES:
            done = measure(case, sizes[case.name], asked)
            found[case.name].append(done)
            session.say(
                f"{turn + 1}  {case.name:<32} {done.read / done.elapsed_s:>12,.0f} rec/s "
                f"{done.us_per_batch:>8,.0f} us, {done.lines} lines, right"
            )
    return found


def cost_table(found: Mapping[str, list[Finished]]) -> list[str]:
    """A line for each flow."""
    rows = []
    for case in CASES:
        runs: list[Any] = found[case.name]
        ratio = "-"
        if case.base:
            pairs = zip(runs, found[case.base], strict=True)
            ratio = with_spread([one.us_per_batch / base.us_per_batch for one, base in pairs])
        rate = median(run.read / run.elapsed_s for run in runs)
        us = median(run.us_per_batch for run in runs)
        rows.append([case.name, f"{rate / 1e6:.2f}", f"{us:,.0f}", case.base or "-", ratio])
    return table(["flow", "million rec/s", "us per 4,000", "compared with", "ratio of us"], rows)


def main() -> None:
    parser = parser_of(__doc__, "columns.md")
    parser.add_argument("--protocol", default="aligned")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3, help="of each run, about")
    parser.add_argument("--slots", type=int, default=2, help="and cores")
    asked = parser.parse_args()
    session = Session(cores=asked.slots)
    tables = [cost_table(measure_all(session, asked))]
    session.write(asked.to, "Records, strings and lists", HOW, tables)


if __name__ == "__main__":
    call(main)
