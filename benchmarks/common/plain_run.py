"""One run of a dataflow with its slots as plain processes of this machine, judged as any run."""

from dataclasses import replace
from pathlib import Path

from snapline.experiments.rates.probing import PATIENT, warm_slots
from snapline.protocols.none import NONE
from snapline.rundir.spec import Spec
from snapline.runs.finished import Run
from snapline.runs.run import carry_out, prepare
from snapline.runtime.driver.timeline import Watcher


def plain_run(spec: Spec, runs: Path, watcher: Watcher | None = None) -> Run:
    """Carry out a run; the program ends if its output is wrong, or nobody can tell though it promised."""
    run = carry_out(replace(prepare(spec, runs=runs), launcher=warm_slots()), PATIENT, watcher)
    if run.verdict.kept == "no" or (run.verdict.kept == "unknown" and spec.protocol != NONE.name):
        raise SystemExit(f"{run.name} under '{spec.faults}': {run.verdict.because}")
    return run
