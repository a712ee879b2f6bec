"""A driver that can be stopped, killed and replaced: `run` with slots as plain processes, without Spark.

As a program it begins a run in the directory of its argument, and says at its end what came of it.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from snapline.errors import SnaplineError
from snapline.runs import run as runtime
from snapline.runs.finished import Run
from snapline.runtime.process_slots import ProcessSlots
from snapline.runtime.spec import Spec

SPEC = Spec("q12", "aligned", slots=1, rate=300, duration_ms=2_000, interval_ms=200, size="small")


def drive(runs: Path, resume: str | None = None) -> Run:
    """Begin a run, or resume one, to its end."""
    spark = SimpleNamespace(sparkContext=SimpleNamespace(master="local"))
    launchers: list[ProcessSlots] = []

    def launcher(session: Any, give_up: Callable[[str], None]) -> ProcessSlots:
        launchers.append(ProcessSlots(give_up))
        return launchers[0]

    on_spark, runtime.SparkSlots = runtime.SparkSlots, launcher
    try:
        return runtime.run(SPEC, spark, runs=runs, resume=resume)
    finally:
        runtime.SparkSlots = on_spark
        for each in launchers:
            each.complaints()


if __name__ == "__main__":
    try:
        print(drive(Path(sys.argv[1])).verdict.kept)
    except SnaplineError as error:
        print(f"{type(error).__name__}: {error}")
