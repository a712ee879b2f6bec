"""The systems that are compared: each takes a load, runs it, has it judged, and gives a figure."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks.common import snapline_side
from benchmarks.common.checks import Load
from benchmarks.common.on_spark import OnSpark
from benchmarks.common.snapline_side import judged
from benchmarks.compare.figures import Figure, Part
from benchmarks.flink import flink_peer
from benchmarks.native import native_peer

ON_SPARK, IN_PROCESSES, EGRESS = "on Spark", "plain processes", "on Spark, egress log"
REUSE, COPY = "Flink, objects reused", "Flink, objects copied"
LIMIT, SYNCED, TIMELY = "native limit", "native limit, snapshots synced", "timely dataflow"
ANCHORS = (LIMIT, SYNCED, TIMELY)


def title(protocol: str, where: str = ON_SPARK, *, numpy: bool = False) -> str:
    """How Snapline is called in the tables; figures with kernels in numpy are not mixed with others."""
    return f"Snapline `{protocol}`{' in numpy' if numpy else ''}, {where}"


def buffered(buffer_ms: int) -> str:
    """How Flink is called where its buffers matter."""
    return f"Flink, buffers {buffer_ms} ms"


#: Flink has its warm-up to read, and is faster afterwards, so it needs more input for the same time
FLINK_NEEDS = 2.5
#: what is right is computed by numpy: a native program would have it compute for minutes
NATIVE_RECORDS_MAX = 250e6


@dataclass(frozen=True)
class System:
    """One of them."""

    name: str
    run: Callable[[Load], Figure]
    needs: float = 1.0  # so much more input than it takes in the time asked for
    most: float = float("inf")  # records


@dataclass(frozen=True)
class Systems:
    """Makes them, with what all of them share."""

    sitting: str
    interval_ms: int
    heap: str
    spark: OnSpark | None  # None: nothing of it is asked for
    numpy: bool = False  # no compiled kernels, by choice

    def ours(self, protocol: str, where: str, warm_ms: int = 0) -> System:
        """Snapline under a protocol."""
        name = title(protocol, where, numpy=self.numpy)
        spark = None if where == IN_PROCESSES else self.spark
        egress = warm_ms > 0 or where == EGRESS

        def run(load: Load) -> Figure:
            found = judged(
                load,
                snapline_side.run(
                    load,
                    protocol=protocol,
                    interval_ms=self.interval_ms,
                    egress=egress,
                    warm_ms=warm_ms,
                    spark=spark,
                ),
            )
            usage = found.done.usage
            return self._figure(load, name)(
                rate=found.rate,
                cpu_s=sum(usage.cpu_s.values()),
                cpu_seconds=usage.seconds,
                cpu_records=load.records,
                checkpoints=found.checkpoints,
                rss=usage.rss,
                pss=usage.pss,
                beside_cpu_s=usage.beside_cpu_s,
                warm_cpu_s=usage.warm_cpu_s,
                warm_seconds=usage.warm_seconds,
                p50_ms=found.p50_ms,
                p99_ms=found.p99_ms,
            )

        return System(name, run)

    def flink(self, name: str, *, reuse: bool, buffer_ms: int = 100, warm_ms: int = 0) -> System:
        """Flink, with these settings."""

        def run(load: Load) -> Figure:
            found = judged(
                load,
                flink_peer.run(
                    load,
                    reuse=reuse,
                    heap=self.heap,
                    interval_ms=self.interval_ms,
                    buffer_ms=buffer_ms,
                    warm_ms=warm_ms,
                ),
            )
            return self._figure(load, name)(
                rate=found.rate,
                cpu_s=found.cpu_s,
                cpu_seconds=found.seconds,
                cpu_records=found.counted,
                checkpoints=found.checkpoints,
                rss=found.rss,
                warm_cpu_s=found.warm_cpu_s,
                warm_seconds=found.warm_seconds,
                p50_ms=found.p50_ms,
                p99_ms=found.p99_ms,
            )

        return System(name, run, needs=FLINK_NEEDS)

    def anchor(self, name: str) -> System:
        """Native code: with synced snapshots or without, or timely dataflow."""
        engine: native_peer.Engine = "timely" if name == TIMELY else "limit"
        snapshot_ms = self.interval_ms if name == SYNCED else 0

        def run(load: Load) -> Figure:
            found = judged(load, native_peer.run(load, engine=engine, snapshot_ms=snapshot_ms))
            return self._figure(load, name)(
                rate=found.rate,
                cpu_s=found.cpu_s,
                cpu_seconds=found.elapsed_s,
                cpu_records=load.records,
                checkpoints=found.checkpoints,
                rss=found.rss,
            )

        return System(name, run, most=NATIVE_RECORDS_MAX)

    def _figure(self, load: Load, system: str) -> Callable[..., Figure]:
        """What is known before it runs."""
        part: Part = "throughput" if load.params.at_once else "latency"
        slots = load.params.partitions
        return partial(Figure, self.sitting, part, system, load.query, 0, slots, load.records)
