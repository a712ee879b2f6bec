"""Snapline's side of the comparison: a query on real slots, from the first record due to the last one out.

Slots are plain processes, the same code that Spark's workers run, with sockets, files and checkpoints as
in any run. The sink is the egress log: it writes all rows, and they are read back to be judged.
"""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from checks import Load, Tally, counted

from snapline.core.protocol import Options
from snapline.dataflow.graph import deploy
from snapline.engine.job import Job, Settings
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


def run(load: Load, *, protocol: str, interval_ms: int, warm_ms: int = 0) -> SnaplineRun:
    """Run a query to its end; latencies of the first `warm_ms` are left out."""
    chosen = PROTOCOLS[protocol]
    deployment = deploy(load.flow(), load.params.partitions)
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
        tallies = [
            counted(load.query, batch) for task in deployment.sinks[SINK] for batch in read(task)
        ]
    return SnaplineRun(
        Tally(sum(t.count for t in tallies), sum(t.checksum for t in tallies) % 2**64),
        load.records / (watch.last_s - driver.origin_s),
        *_latency(watch, warm_ms),
        watch.seconds[-1].lines,
    )


def _latency(watch: Stopwatch, warm_ms: int) -> tuple[float, float]:
    latency = Histogram()
    for second in watch.seconds:
        if second.at_s * 1000 >= warm_ms:
            latency.merge(second.latency)
    return latency.percentile_ms(50) or 0.0, latency.percentile_ms(99) or 0.0
