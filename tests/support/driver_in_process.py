"""Whole runs, through `runs.run`, with slots as plain processes and without Spark.

As a program it begins a run in the directory of its argument, and says at its end what came of it: a driver
that can be stopped, killed and replaced.
"""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from held_input import Hold
from snapline.errors import SnaplineError
from snapline.rundir.program import build_job
from snapline.rundir.spec import Spec
from snapline.runs import run as runtime
from snapline.runs.finished import Run
from snapline.runtime.driver.roster import Timeouts
from snapline.runtime.launch.processes import ProcessSlots

SPEC = Spec(
    "q12", protocol="aligned", slots=1, rate=300, duration_ms=2_000, interval_ms=200, size="small"
)
PATIENT = Timeouts(silence_s=60, lease_s=150)


def use_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs have plain processes as slots, and no Spark."""
    no_spark = SimpleNamespace(stop=lambda: None)
    monkeypatch.setattr(runtime, "SparkSlots", lambda *given: ProcessSlots())
    monkeypatch.setattr(runtime, "own_session", lambda *given, **named: no_spark)


def drive(runs: Path, resume: str | None = None) -> Run:
    """Begin a run, or resume one, to its end; whoever holds its input has done so already."""
    hold = Hold(runs, begun=False)
    with pytest.MonkeyPatch.context() as monkeypatch:
        use_processes(monkeypatch)
        monkeypatch.setattr(runtime, "build_job", lambda *what: hold.held(build_job(*what)))
        if resume is not None:
            return runtime.resume(resume, runs=runs, timeouts=PATIENT)
        return runtime.run(SPEC, runs=runs, timeouts=PATIENT)


if __name__ == "__main__":
    try:
        print(drive(Path(sys.argv[1])).verdict.kept)
    except SnaplineError as error:
        print(f"{type(error).__name__}: {error}")
