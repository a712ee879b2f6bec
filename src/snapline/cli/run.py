"""`snapline run`, `checkpoints` and `doctor`: real runs on Spark, the lines they keep, and what they need.

The runtime is imported when it is used: Spark takes a second to import, and `--help` must not wait for it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from snapline.arguments import option, written_rate
from snapline.cli.pages.live import beside
from snapline.cli.pages.report import write_page
from snapline.cli.systems import refuse_description, run_system
from snapline.cli.terminal import checkpoints_page
from snapline.cli.terminal.console import JSON_VERSION, escape, messages, print_json, results
from snapline.cli.terminal.given import refuse_ours
from snapline.cli.terminal.live import watching_run
from snapline.cli.terminal.summary import print_summary
from snapline.errors import SnaplineError, UsageError
from snapline.ids import Millis
from snapline.rundir.spec import OWN, RULES, refuse_idle, spec_from
from snapline.runs.interrupt import Interrupted
from snapline.workload.common.settings import split_settings

if TYPE_CHECKING:
    from snapline.runs.finished import Run
    from snapline.runs.run import PreparedRun
    from snapline.runtime.driver.driver import Timeouts

Patience: TypeAlias = tuple[str, str, int, str]
"""The options --heartbeat, --silence, --restart-failures and --restart-window."""

KEPT, BROKEN, UNKNOWN = 0, 1, 3
EXIT = {"yes": KEPT, "no": BROKEN, "unknown": UNKNOWN}


DOCTOR_EXAMPLES = """[bold]Examples[/bold]

Look for Java, Spark, memory and a place for runs:
[cyan]snapline doctor[/cyan]

Run a tiny job on Spark, too:
[cyan]snapline doctor --try-spark[/cyan]"""


def described(stated: Mapping[str, Any]) -> dict[str, Any]:
    """Make the description of a run from the parameters of `snapline run` that were given.

    Those that were not given are left out, so that it can be told which ones have no effect.
    """
    given = {_RENAMED.get(name, name): value for name, value in stated.items()}
    for name, read in READ.items():
        if name in given:
            given[name] = read(given[name])
    return {name: value for name, value in given.items() if name in RULES}


_RENAMED = {"source": "input", "full_journal": "journal"}
READ: Mapping[str, Callable[[Any], Any]] = {
    "rate": lambda text: written_rate(text, "--rate"),
    "settings": split_settings,
    "options": lambda texts: split_settings(texts, "an option", "batch=500"),
    "pools": lambda texts: read_pools(texts),
    "save": lambda texts: split_settings(texts, "--save", "model=1s"),
    "inputs": lambda texts: split_settings(texts, "--inputs", "model=keep"),
    "guarantee": lambda level: level.value,
    "journal": lambda full: "full" if full else "brief",
}
"""How parameters are read that the shell gives in another form than their rules expect."""


def read_pools(texts: Sequence[str]) -> dict[str, int | str]:
    """The sizes of pools, as the shell gives them: `model=2`; what is no number stays a text."""
    given = split_settings(texts, "a pool", "model=1")
    return {name: int(n) if n.isascii() and n.isdecimal() else n for name, n in given.items()}


def start_run(stated: Mapping[str, str], params: Mapping[str, Any]) -> int:
    """Begin a run, resume one, or fork one, as the parameters of `snapline run` say; return the exit code.

    `stated` are those that stand on the command line, and how each is written there.
    """
    refuse_ours(params["system"], stated)
    runs, flow = params["runs"], params["flow"]
    resume, fork, line = params["resume"], params["fork"], params["line"]
    names = ("heartbeat", "silence", "restart_failures", "restart_window")
    heartbeat, silence, failures, window = (params[name] for name in names)
    patience: Patience = (heartbeat, silence, failures, window)
    if resume is not None or fork is not None:
        refuse_description(stated)
    elif line is not None:
        raise UsageError("--line says at which line a fork begins: say --fork RUN, too")
    telling = Telling(params["as_json"], params["ui"], params["report"], params["live"])
    if resume is not None:
        return resume_run(resume, runs, patience, telling)
    if fork is not None:
        return fork_run(fork, line, runs, patience, telling)
    if flow is None:
        raise UsageError("say what to run: a workload (see 'snapline list'), or --resume RUN")
    given = described({name: params[name] for name in stated})
    return run_flow(given, runs, patience, telling)


@dataclass(frozen=True, slots=True)
class Telling:
    """How a run is told: as JSON or as text, with Spark's pages, with a page about it at the end."""

    as_json: bool = False
    ui: bool = False
    report: Path | None = None  # where the page goes; None: there is none
    live: bool = False  # whether there is a page while the run goes on


def run_flow(given: Mapping[str, Any], runs: Path, patience: Patience, telling: Telling) -> int:
    """Run what the options describe, print how it went, and return the exit code."""
    from snapline.runs.patience import timeouts
    from snapline.runs.run import prepare
    from snapline.runs.supervise import kills_driver
    from snapline.spark.slot_jobs import submitted_session

    refuse_idle(given, option)
    spec = spec_from(given, option)
    quick = timeouts(*patience, option)
    if spec.system != OWN:
        return run_system(spec, runs, telling.as_json)
    # Bad input is refused here, before Spark is started.
    prepared = _with_pages(prepare(spec, submitted_session(), runs=runs), telling.ui)
    if kills_driver(spec.faults):
        return _run_in_children(prepared, quick, telling)
    return _carry_out(prepared, quick, telling)


def resume_run(name: str, runs: Path, patience: Patience, telling: Telling) -> int:
    """Go on with a run, print how it went, and return the exit code."""
    from snapline.runs.patience import timeouts
    from snapline.runs.run import prepare_resume
    from snapline.spark.slot_jobs import submitted_session

    quick = timeouts(*patience, option)
    prepared = prepare_resume(name, submitted_session(), runs=runs)
    return _carry_out(_with_pages(prepared, telling.ui), quick, telling)


def fork_run(name: str, line: int | None, runs: Path, patience: Patience, telling: Telling) -> int:
    """Begin a new run at a kept line of another, print how it went, and return the exit code."""
    from snapline.runs.patience import timeouts
    from snapline.runs.run import prepare_fork
    from snapline.spark.slot_jobs import submitted_session

    quick = timeouts(*patience, option)
    prepared = prepare_fork(name, line, submitted_session(), runs=runs)
    return _carry_out(_with_pages(prepared, telling.ui), quick, telling)


def _with_pages(prepared: "PreparedRun", ui: bool) -> "PreparedRun":
    """The same run, with or without the pages of the Spark that is started for it. Raises UsageError."""
    if ui and prepared.spark is not None:
        raise UsageError(
            "--ui is for a Spark that Snapline starts itself: that of spark-submit has its pages unless "
            "spark.ui.enabled is false, so leave it out"
        )

    def tell(url: str) -> None:
        messages().print(f"Spark's pages are at {escape(url)} while the run goes on")

    return replace(prepared, on_ui=tell) if ui else prepared


def _run_in_children(prepared: "PreparedRun", timeouts: "Timeouts", telling: Telling) -> int:
    """Run a flow whose faults kill the driver: in child processes, each of which resumes the run."""
    from snapline.runs.run import create_run, prepare_resume
    from snapline.runs.supervise import Death, in_children

    if prepared.spark is not None:
        raise UsageError("under spark-submit the driver is not ours to start again: do not kill it")
    directory = create_run(prepared)

    def tell(death: Death) -> None:
        when = f"{death.at_ms / 1000:.1f} s"
        again = f"its driver is dead since {when}, as asked; {directory.name} is resumed"
        messages().print(escape(again), soft_wrap=True)

    def attempt(after_ms: Millis) -> int:
        again = prepare_resume(directory.name, runs=prepared.runs, after_ms=after_ms)
        return _carry_out(replace(again, on_ui=prepared.on_ui), timeouts, telling)

    return in_children(directory, attempt, tell)


def _carry_out(prepared: "PreparedRun", timeouts: "Timeouts", telling: Telling) -> int:
    from snapline.runs.run import carry_out

    messages().print("starting Spark ...")
    try:
        with (
            watching_run(protocol=prepared.spec.protocol) as told,
            beside(told, live=telling.live) as watcher,
        ):
            finished = carry_out(prepared, timeouts, watcher)
    except Interrupted as interrupted:
        return _tell_interrupted(interrupted, prepared.runs)
    if telling.as_json:
        print_json(_as_json(finished))
    else:
        print_summary(finished, prepared.spec.protocol)
    if telling.report is not None:
        _write_report(finished, telling.report)
    return EXIT[finished.verdict.kept]


def _write_report(finished: "Run", path: Path) -> None:
    """Write the page about a run, and say how to open it; its exit code stays what it is."""
    try:
        write_page(path, finished.page())
    except SnaplineError as error:
        messages().print(f"[yellow]there is no page:[/] {escape(error)}", soft_wrap=True)
        return
    opened = escape(path.resolve().as_uri())
    messages().print(
        f"a page that explains this run: {opened} (open it in a browser)", soft_wrap=True
    )


def _tell_interrupted(interrupted: Interrupted, runs: Path) -> int:
    if interrupted.run is None:
        messages().print("interrupted before the run had begun")
    else:
        where = f" --runs {runs}" if runs != Path("runs") else ""
        again = escape(f"snapline run --resume {interrupted.run}{where}")
        how = "stopped with a last line" if interrupted.whole else "interrupted"
        messages().print(f"{how}; go on with: {again}", soft_wrap=True)
        if interrupted.whole:
            judged = escape(f"snapline validate {interrupted.run}{where}")
            messages().print(f"judge what it has put out with: {judged}", soft_wrap=True)
    return 128 + interrupted.number


def _as_json(finished: "Run") -> dict[str, Any]:
    return {
        "version": JSON_VERSION,
        "run": finished.name,
        "directory": str(finished.directory.path),
        "kept": finished.verdict.kept,
        "because": finished.verdict.because,
        "guarantees": dict(finished.verdict.guarantees),
        "faults": [asdict(strike) for strike in finished.faults],
        "metrics": finished.metrics,
        "rows": dict(finished.rows),
    }


def show_checkpoints(name: str, runs: Path, verify: bool, as_json: bool) -> int:
    """Show the lines that a run keeps; if asked to, read all that they need. Return the exit code."""
    from snapline.rundir.directory import RunDirectory
    from snapline.rundir.lines import verify as verifying
    from snapline.rundir.lines.listing import list_lines
    from snapline.rundir.presence import refuse_if_driven

    directory = RunDirectory.open(runs, name)
    verified = None
    if verify:
        refuse_if_driven(directory)
        verified = verifying.verify(directory, checkpoints_page.progress())
    # A damaged ledger hides the lines: then the damage is all that there is to tell.
    known = verified is None or not verified.damages or verified.lines
    lines = list_lines(directory) if known else []
    if as_json:
        checkpoints_page.lines_json(directory.name, str(directory.path), lines, verified)
    else:
        if known:
            checkpoints_page.print_lines(directory.name, lines)
        if verified is not None:
            checkpoints_page.print_verified(directory.name, verified)
    return BROKEN if verified is not None and verified.damages else KEPT


def diagnose(runs: Path, try_spark: bool, as_json: bool) -> int:
    """Check whether this machine can run Snapline on Spark, and print what is missing."""
    from snapline.spark.doctor import checks

    found = checks(runs, try_spark)
    if as_json:
        shown = [{"name": c.name, "ok": c.ok, "found": c.found} for c in found]
        print_json({"version": JSON_VERSION, "checks": shown})
    else:
        for check in found:
            mark = "[green]ok[/]     " if check.ok else "[red]mend[/]   "
            advice = f"  {escape(check.advice)}" if check.advice else ""
            results().print(f"{mark}{check.name:10} {escape(check.found)}{advice}", soft_wrap=True)
    return KEPT if all(check.ok for check in found) else UNKNOWN
