"""The anchors of the comparison: a native limit and timely dataflow, built by Cargo, run in one process.

Both make the same records, take the same queries, and count as every sink of the comparison does; see
`peer/src`. Where there is no Rust tool chain, there are no anchors, and `missing` says so.
"""

import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.common.checks import Load, Tally
from benchmarks.flink.flink_peer import GOLDEN, words_of

HOME = Path(__file__).parent / "peer"
PROGRAM = HOME / "target" / "release" / "native-peer"
RUN_SECONDS_MAX = 300
BUILD_SECONDS_MAX = 1_200

Engine = Literal["limit", "timely"]


@dataclass(frozen=True)
class NativeRun:
    """What a run has measured."""

    tally: Tally
    rate: float  # records per second, from the first one to the last one counted
    elapsed_s: float
    cpu_s: float  # of the whole process
    rss: int  # the highest
    checkpoints: int  # snapshots that were synced


def missing() -> str | None:
    """Why there can be no anchors here; None if there can."""
    if shutil.which("cargo") is None:
        return "no Rust tool chain (cargo) on this machine: no native limit and no timely dataflow"
    return None


def build() -> None:
    """Compile what has changed, and compare the generator with Snapline's."""
    command = ["cargo", "build", "--release", "--locked", "--quiet"]
    subprocess.run(command, cwd=HOME, check=True, timeout=BUILD_SECONDS_MAX)
    subprocess.run(
        [str(PROGRAM), "--check", str(GOLDEN)], check=True, stdout=subprocess.DEVNULL, timeout=60
    )


def run(load: Load, *, engine: Engine, snapshot_ms: int = 0) -> NativeRun:
    """Run a query to its end, with a synced snapshot every so often, or none."""
    with tempfile.TemporaryDirectory(prefix="native-peer-") as scratch:
        said = {"engine": engine, "snapshot_ms": snapshot_ms, "directory": scratch}
        words = [*words_of(load), *(f"{name}={value}" for name, value in said.items())]
        done = subprocess.run(
            [str(PROGRAM), *words], capture_output=True, text=True, timeout=RUN_SECONDS_MAX
        )
    if done.returncode != 0:
        raise RuntimeError(f"{engine} failed at {load}:\n{done.stderr[-4000:]}")
    return read(done.stdout)


def read(said: str) -> NativeRun:
    """What the program has printed."""
    found = json.loads(said)
    del found["records"]
    return NativeRun(Tally(found.pop("count"), found.pop("checksum")), **found)
