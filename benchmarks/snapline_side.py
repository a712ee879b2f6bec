"""Snapline's side of the comparison: a query on real slots, from the first record due to the last one out.

Slots are plain processes, the same code that Spark's workers run, with sockets, files and checkpoints as
in any run. The sink counts, as Flink's does, and what it has counted is part of every checkpoint; or it is
the egress log, which writes all rows, and they are read back to be judged.
"""

import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import checks
import numpy as np
from checks import Load, Tally, counted
from pyspark import cloudpickle

from snapline.batch import Batch
from snapline.core.messages import END_OF_TIME
from snapline.core.protocol import Options
from snapline.dataflow.graph import Dataflow, deploy
from snapline.dataflow.operator import OUT, Capture, Operator, Outputs
from snapline.engine.job import Job, Settings
from snapline.ids import Millis
from snapline.metrics.histogram import Histogram
from snapline.protocols import PROTOCOLS
from snapline.runtime.driver import Driver, Timeouts
from snapline.runtime.process_slots import ProcessSlots
from snapline.runtime.rundir import RunDirectory
from snapline.runtime.timeline import Timeline
from snapline.runtime.words import Pulse
from snapline.workload.nexmark.oracle import SINK

TIMEOUTS = Timeouts(heartbeat_s=0.1, silence_s=30, lease_s=30)


@dataclass(frozen=True)
class SnaplineRun:
    """What a run has measured."""

    tally: Tally
    rate: float  # records per second, of all sources, from the first one due to the last one out
    p50_ms: float  # of what was written after the warm-up
    p99_ms: float
    checkpoints: int  # lines that were committed


class Stopwatch(Timeline):
    """Remembers when something was done last, to a heartbeat."""

    def __init__(self) -> None:
        super().__init__()
        self.last_s = 0.0

    def pulse(self, slot: int, pulse: Pulse) -> None:
        super().pulse(slot, pulse)
        if pulse.read or pulse.written:
            self.last_s = time.time()


class CountingSink(Operator):
    """A sink that puts out one row, at the end: how many rows came, and their checksum."""

    uses_time = True

    def __init__(self, query: str) -> None:
        self._query = query
        self._tally = Tally(0, 0)

    def process(self, port: str, batch: Batch) -> Outputs:
        self._tally = added(self._tally, counted(self._query, batch))
        return ()

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
    pickler: Any = cloudpickle  # it has no types
    for module in (checks, sys.modules[__name__]):  # a slot cannot import them
        pickler.register_pickle_by_value(module)
    query = flow.name
    nodes = flow.graph.nodes
    nodes[SINK] = replace(nodes[SINK], factory=lambda: CountingSink(query))
    return flow


def run(
    load: Load, *, protocol: str, interval_ms: int, warm_ms: int = 0, egress: bool = False
) -> SnaplineRun:
    """Run a query to its end; latencies, which only the egress log has, without the first `warm_ms`."""
    chosen = PROTOCOLS[protocol]
    flow = load.flow() if egress else with_counting_sink(load.flow())
    deployment = deploy(flow, load.params.partitions)
    options, settings = Options(interval_ms=interval_ms), Settings(linger_ms=2)
    job = Job(load.query, deployment, chosen, options, chosen.guarantees[0], settings)
    with tempfile.TemporaryDirectory(prefix="snapline-side-") as runs:
        directory = RunDirectory.create(Path(runs), load.query, protocol, {})
        watch = Stopwatch()
        slots = ProcessSlots(lambda why: driver.loop.post(lambda: driver.finish(why)))
        driver = Driver(job, directory, slots, timeouts=TIMEOUTS, timeline=watch)
        problem = driver.run()
        complaints = slots.complaints()
        if problem is not None:
            raise RuntimeError("\n".join([f"Snapline failed at {load}: {problem}", *complaints]))
        outlet = directory.outlet
        read = outlet.committed if chosen.checkpoints else outlet.uncommitted
        tally = Tally(0, 0)
        for rows in (rows for task in deployment.sinks[SINK] for rows in read(task)):
            tally = added(tally, counted(load.query, rows) if egress else tally_of(rows))
    rate = load.records / (watch.last_s - driver.origin_s)
    return SnaplineRun(tally, rate, *_latency(watch, warm_ms), watch.seconds[-1].lines)


def _latency(watch: Stopwatch, warm_ms: int) -> tuple[float, float]:
    latency = Histogram()
    for second in watch.seconds:
        if second.at_s * 1000 >= warm_ms:
            latency.merge(second.latency)
    return latency.percentile_ms(50) or 0.0, latency.percentile_ms(99) or 0.0
