"""Snapline's side of the comparison: a query on real slots, from the first record due to the last one out.

Slots run on Spark, in one session that serves all runs, or as plain processes with the same code; sockets,
files and checkpoints are as in any run. The sink counts, as Flink's does, and what it has counted is in
every checkpoint; or it is the egress log, which writes all rows, and they are read back to be judged.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np
from pyspark import cloudpickle

from benchmarks.common import checks, real_run
from benchmarks.common.checks import Load, Tally, counted, expected
from benchmarks.common.on_spark import OnSpark
from benchmarks.common.real_run import Finished
from snapline.batch import Batch
from snapline.core.messages import END_OF_TIME
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.operators.operator import OUT, Capture, Operator, Outputs
from snapline.engine.job import Settings
from snapline.ids import Millis
from snapline.metrics.histogram import Histogram
from snapline.metrics.second import Second
from snapline.runtime.driver.driver import Driver
from snapline.workload.common.base import Params
from snapline.workload.nexmark.oracle import SINK

EVENT_MS = 60_000  # the times of the input span this: six windows


def load_of(query: str, records: float, slots: int, **params: Any) -> Load:
    """A query with about so many records, all due at once."""
    return _load(query, records, slots, duration_ms=EVENT_MS, at_once=True, **params)


def paced(query: str, rate: float, seconds: float, slots: int, **params: Any) -> Load:
    """A query with records that come at this rate."""
    return _load(query, rate * seconds, slots, duration_ms=int(seconds * 1000), **params)


def _load(query: str, records: float, slots: int, **params: Any) -> Load:
    share = 3 / 4 if query in ("q3", "q8") else 1  # three auctions, and a person for them
    per_partition = max(3, int(records * share / slots) // 3 * 3)
    return Load(query, Params(1, slots, per_partition, full=True, **params))


@dataclass(frozen=True)
class SnaplineRun:
    """What a run has measured."""

    tally: Tally
    rate: float  # records per second, of all sources, from the first one due to the last one out
    p50_ms: float  # of what was written after the warm-up
    p99_ms: float
    checkpoints: int  # lines that were committed
    done: Finished  # all else, but its files
    deleted: int = 0  # rows that were published, and are in no tally, because they were not kept


class Judgeable(Protocol):
    """A run that has a tally, ours or a peer's."""

    @property
    def tally(self) -> Tally: ...


Run = TypeVar("Run", bound=Judgeable)


def judged(load: Load, measured: Run) -> Run:
    """The run, if its output is right."""
    if measured.tally != expected(load):
        raise SystemExit(f"wrong output: {measured.tally}, expected {expected(load)}, of {load}")
    return measured


class CountingSink(Operator):
    """A sink that puts out one row, at the end: how many rows came, and their checksum."""

    uses_time = True

    def __init__(self, query: str) -> None:
        self._query = query
        self._tally = Tally(0, 0)

    def process(self, port: str, batch: Batch) -> Outputs:
        self._tally = added(self._tally, self.count(batch))
        return ()

    def count(self, batch: Batch) -> Tally:
        """The tally of some rows."""
        return counted(self._query, batch)

    def on_watermark(self, time: Millis) -> Outputs:
        return ((OUT, self._row()),) if time >= END_OF_TIME else ()

    def capture(self, *, full: bool) -> Capture:
        return Capture(True, {"tally": self._row()})

    def restore(self, captures: Sequence[Capture]) -> None:
        self._tally = tally_of(captures[-1].parts["tally"])

    def _row(self) -> Batch:
        count, checksum = self._tally
        bits = np.array([checksum], np.uint64).view(np.int64)
        return Batch({"count": np.array([count], np.int64), "checksum": bits}, 1)


def tally_of(row: Batch) -> Tally:
    """What a counting sink has put out."""
    return Tally(int(row["count"][0]), int(row["checksum"].view(np.uint64)[0]))


def added(one: Tally, other: Tally) -> Tally:
    """Both together."""
    return Tally(one.count + other.count, (one.checksum + other.checksum) % 2**64)


def with_counting_sink(flow: Dataflow) -> Dataflow:
    """The same dataflow; its sink counts."""
    query = flow.name
    nodes = flow.graph.nodes
    nodes[SINK] = replace(nodes[SINK], factory=lambda: CountingSink(query))
    return by_value(flow)


def by_value(flow: Dataflow) -> Dataflow:
    """The same dataflow, whose slots need not import what stands beside this file: they cannot."""
    pickler: Any = cloudpickle  # it has no types
    for module in (checks, real_run, sys.modules[__name__]):
        pickler.register_pickle_by_value(module)
    return flow


def run(
    load: Load,
    *,
    protocol: str,
    interval_ms: int,
    warm_ms: int = 0,
    egress: bool = False,
    settings: Settings = real_run.SETTINGS,
    prepare: Callable[[Driver], None] = lambda driver: None,
    program: str = real_run.PROGRAM,
    spark: OnSpark | None = None,
    journal_bytes: int | None = None,
    retain_ms: int | None = None,
) -> SnaplineRun:
    """Run a query to its end; latencies, which only the egress log has, without the first `warm_ms`."""
    flow = load.flow() if egress else with_counting_sink(load.flow())
    with real_run.finished(
        flow,
        load.params.partitions,
        protocol=protocol,
        interval_ms=interval_ms,
        settings=settings,
        prepare=prepare,
        program=program,
        spark=spark,
        journal_bytes=journal_bytes,
        retain_ms=retain_ms,
        timeouts=real_run.TIMEOUTS if load.params.at_once else real_run.PACED_TIMEOUTS,
        warm_s=warm_ms / 1000,
    ) as done:
        tally = Tally(0, 0)
        for _, rows in done.rows(SINK):
            tally = added(tally, counted(load.query, rows) if egress else tally_of(rows))
        return SnaplineRun(
            tally,
            load.records / done.elapsed_s,
            *_latency(done.seconds, warm_ms),
            done.lines,
            done,
            sum(done.directory.output.floor().rows.values()),
        )


def _latency(seconds: Iterable[Second], warm_ms: int) -> tuple[float, float]:
    latency = Histogram()
    for second in seconds:
        if second.at_s * 1000 >= warm_ms:
            latency.merge(second.latency)
    return latency.percentile_ms(50) or 0.0, latency.percentile_ms(99) or 0.0
