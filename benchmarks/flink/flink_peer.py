"""Flink's side of the comparison: built by Maven when its sources have changed, run in one JVM.

One task manager with as many slots as there are partitions, heap state, exactly-once checkpoints into
files. Every call is a new JVM, and the JVM is gone when the call returns.
"""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common.checks import Load, Tally
from snapline.workload.nexmark.dashboard_oracle import every_ms, sliding_ms
from snapline.workload.nexmark.oracle import window_ms

HOME = Path(__file__).parent / "peer"
GOLDEN = HOME / "golden.txt"
OPENED = ("java.lang", "java.nio", "java.time", "java.util", "java.util.concurrent")
RUN_SECONDS_MAX = 300


@dataclass(frozen=True)
class FlinkRun:
    """What a run has measured."""

    tally: Tally
    rate: float  # records per second, of all sources, without the warm-up
    p50_ms: float  # of a paced run
    p99_ms: float
    checkpoints: int  # that were completed
    cpu_s: float  # of the JVM, while `counted` records were read: without the warm-up; of a paced run ...
    seconds: float  # ... from the first record due to the end of the job
    counted: int
    warm_cpu_s: float  # of a paced run, without the warm-up
    warm_seconds: float
    rss: int  # the highest of the JVM


def build() -> None:
    """Compile, unless that was done since the last change; and compare the generator with Snapline's."""
    mark = HOME / "target" / "built"
    sources = [HOME / "pom.xml", *HOME.glob("src/**/*.java")]
    if not mark.exists() or mark.stat().st_mtime < max(path.stat().st_mtime for path in sources):
        if shutil.which("mvn") is None or shutil.which("java") is None:
            raise SystemExit("the comparison needs Java 17 or newer (a JDK) and Maven on the PATH")
        subprocess.run(["mvn", "-q", "-B", "clean", "package"], cwd=HOME, check=True)
        mark.touch()
    check = [*java("256m"), "--check", str(GOLDEN)]
    subprocess.run(check, check=True, stdout=subprocess.DEVNULL)


def java(heap: str, options: Sequence[str] = ()) -> list[str]:
    """The command that starts the program."""
    memory = [f"-Xms{heap}", f"-Xmx{heap}"]
    opened = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED]
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    classes = f"{HOME / 'target' / 'classes'}:{HOME / 'target' / 'lib'}/*"
    return ["java", *memory, *opened, *options, quiet, "-cp", classes, "peer.Main"]


def words_of(load: Load) -> list[str]:
    """What every peer is told of its input."""
    params = load.params
    said = {
        "query": load.query,
        "seed": params.seed,
        "partitions": params.partitions,
        "records": params.records,
        "duration_ms": params.duration_ms,
        "disorder_ms": load.disorder_ms,
        "hot": params.hot,
        "hot_ms": params.hot_ms,
        "window_ms": sliding_ms(params) if load.slides else window_ms(params),
        "every_ms": every_ms(params),
    }
    return [f"{name}={value}" for name, value in said.items()]


def run(
    load: Load, *, reuse: bool, heap: str, interval_ms: int, buffer_ms: int = 100, warm_ms: int = 0
) -> FlinkRun:
    """Run a query to its end; latencies of the first `warm_ms` are left out."""
    params = load.params
    with tempfile.TemporaryDirectory(prefix="flink-peer-") as scratch:
        said = {
            "warm_ms": warm_ms,
            "paced": not params.at_once,
            "reuse": reuse,
            "checkpoint_ms": interval_ms,
            "buffer_ms": buffer_ms,
        }
        words = [f"{name}={str(value).lower()}" for name, value in said.items()]
        words += words_of(load)
        # Measured here: the parallel collector takes more records, the default one pauses for less time.
        collector = "-XX:+UseParallelGC" if params.at_once else "-XX:+UseG1GC"
        command = [*java(heap, [collector, f"-Djava.io.tmpdir={scratch}"]), *words]
        command.append(f"directory={scratch}")
        done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS_MAX)
    if done.returncode != 0:
        raise RuntimeError(f"Flink failed at {load}:\n{done.stderr[-4000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    tally = Tally(found.pop("count"), found.pop("checksum"))
    del found["records"]
    return FlinkRun(tally, **found)
