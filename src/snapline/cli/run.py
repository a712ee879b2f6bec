"""`snapline run`, `runs` and `doctor`: real runs on Spark, what is left of them, and what they need.

The runtime is imported when it is used: Spark takes a second to import, and `--help` should not.
"""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snapline.cli.terminal.console import escape, messages, print_json, results
from snapline.cli.terminal.live import watching_run
from snapline.cli.terminal.summary import print_summary
from snapline.errors import UsageError
from snapline.runs.interrupt import Interrupted

if TYPE_CHECKING:
    from snapline.rundir.spec import Spec
    from snapline.runs.finished import Run
    from snapline.runtime.driver.driver import Timeouts

KEPT, BROKEN, UNKNOWN = 0, 1, 3
EXIT = {"yes": KEPT, "no": BROKEN, "unknown": UNKNOWN}


RUN_EXAMPLES = """[bold]Examples[/bold]

A run of twenty seconds on Spark, with a slot killed for real:
[cyan]snapline run q12 --faults "kill slot=1 at=8s"[/cyan]

A dataflow of your own, judged by runs without failures:
[cyan]snapline run my_flow.py:flow --reference --faults "kill slot=0 at=8s"[/cyan]

Ten minutes in which everything keeps breaking:
[cyan]snapline run q12 --chaos "seed=7 intensity=high" --duration 10m[/cyan]

Faults from a file:
[cyan]snapline run q12 --faults @plan.txt[/cyan]

A fifth of the bids from one bidder, another one every five seconds:
[cyan]snapline run q12 --hot 20 --hot-moves 5s[/cyan]

Outputs that name the events behind them, and more events that come late:
[cyan]snapline run sst --set disorder=3s --set resources=100 --faults "kill slot=1 at=8s"[/cyan]

Another protocol, killed again while it recovers:
[cyan]snapline run q3 --protocol hmnr --faults "kill slot=1 at=8s; kill slot=0 on=recovery"[/cyan]

Another system, and what a killed driver does to it:
[cyan]snapline run sst --system structured-streaming --faults "kill driver on=round"[/cyan]

Go on after the driver was killed:
[cyan]snapline run --resume last[/cyan]"""


def run_on_spark(
    spec: "Spec | None", resume: str | None, runs: Path, timeouts: "Timeouts", as_json: bool
) -> int:
    """Run a flow, or resume a run, and tell how it went."""
    from snapline.runs import run as runtime
    from snapline.runs.supervise import kills_driver
    from snapline.runtime.driver.inject import check_executors
    from snapline.spark.ready import check_ready
    from snapline.spark.slot_jobs import submitted_session

    if spec is not None:  # bad input is said before Spark is started
        runtime.check_spec(spec)
        spark = submitted_session()
        check_executors(runtime.faults_of(spec), spark)
        check_ready(spec, spark, runs)
        if kills_driver(spec.faults):
            return _run_in_children(spec, runs, timeouts, as_json)
    elif resume is not None:
        runtime.check_resume(runs, resume)
    return _run(spec, resume, None, runs, timeouts, as_json)


def _run_in_children(spec: "Spec", runs: Path, timeouts: "Timeouts", as_json: bool) -> int:
    """Run a flow whose driver is to die, as often as it takes."""
    from snapline.runs.run import create_run
    from snapline.runs.supervise import Death, in_children
    from snapline.spark.slot_jobs import submitted_session

    if submitted_session() is not None:
        raise UsageError("under spark-submit the driver is not ours to start again: do not kill it")
    directory = create_run(spec, runs)

    def tell(death: Death) -> None:
        when = f"{death.at_ms / 1000:.1f} s"
        again = f"its driver is dead since {when}, as asked; {directory.name} is resumed"
        messages().print(escape(again), soft_wrap=True)

    return in_children(
        directory,
        lambda after_ms: _run(None, directory.name, after_ms, runs, timeouts, as_json),
        tell,
    )


def _run(
    spec: "Spec | None",
    resume: str | None,
    after_ms: int | None,
    runs: Path,
    timeouts: "Timeouts",
    as_json: bool,
) -> int:
    from snapline.rundir.spec import Spec
    from snapline.runs import run as runtime
    from snapline.spark.slot_jobs import submitted_session

    messages().print("starting Spark ...")
    asked = spec if spec is not None else Spec("")
    try:
        with watching_run() as told:
            finished = runtime.run(
                asked,
                submitted_session(),
                runs=runs,
                resume=resume,
                after_ms=after_ms,
                timeouts=timeouts,
                watcher=told,
            )
    except Interrupted as interrupted:
        return _tell_interrupted(interrupted, runs)
    if as_json:
        print_json(_as_json(finished))
    else:
        print_summary(finished)
    return EXIT[finished.verdict.kept]


def _tell_interrupted(interrupted: Interrupted, runs: Path) -> int:
    if interrupted.run is None:
        messages().print("interrupted before the run had begun")
    else:
        where = f" --runs {runs}" if runs != Path("runs") else ""
        again = escape(f"snapline run --resume {interrupted.run}{where}")
        messages().print(f"interrupted; go on with: {again}", soft_wrap=True)
    return 128 + interrupted.number


def _as_json(finished: "Run") -> dict[str, Any]:
    return {
        "run": finished.name,
        "directory": str(finished.directory.path),
        "kept": finished.verdict.kept,
        "because": finished.verdict.because,
        "guarantees": dict(finished.verdict.guarantees),
        "faults": [asdict(strike) for strike in finished.faults],
        "metrics": dict(finished.metrics),
        "rows": dict(finished.rows),
    }


def diagnose(runs: Path, try_spark: bool, as_json: bool) -> int:
    """Look at the machine."""
    from snapline.spark.doctor import checks

    found = checks(runs, try_spark)
    if as_json:
        print_json({"checks": [{"name": c.name, "ok": c.ok, "found": c.found} for c in found]})
    else:
        for check in found:
            mark = "[green]ok[/]     " if check.ok else "[red]mend[/]   "
            advice = f"  {escape(check.advice)}" if check.advice else ""
            results().print(f"{mark}{check.name:10} {escape(check.found)}{advice}", soft_wrap=True)
    return KEPT if all(check.ok for check in found) else UNKNOWN
