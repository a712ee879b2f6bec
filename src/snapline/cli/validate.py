"""`snapline validate`: only judges, either a run of Snapline or what another system has recorded."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich import box
from rich.table import Table

from snapline.cli.terminal.console import escape, messages, print_json, results
from snapline.cli.terminal.summary import (
    VERDICTS,
    deviation_text,
    print_phases,
    verdict_line,
)
from snapline.cli.terminal.validate_options import AUTO
from snapline.core.guarantee import Guarantee
from snapline.durations import millis
from snapline.errors import UsageError
from snapline.judge.report_files import (
    NOT_DECLARED,
    Report,
    held_to,
    late_share,
    reliability,
    report_of,
    to_json,
    write_junit,
)
from snapline.validate.causes import Cause
from snapline.validate.judged import PROMISES, Answer, Judged
from snapline.wording import plural

if TYPE_CHECKING:
    from snapline.dataflow.graph import Dataflow
    from snapline.judge.evidence import Question
    from snapline.judge.run_directory import Judgement
    from snapline.rundir.directory import RunDirectory

EXIT: Final = {"yes": 0, "no": 1, "unknown": 3}

IDLE_WITHOUT_A_RUN: Final = {
    "runs": "is for a RUN: --input and --output say where all is, so leave it out"
}
"""The options that have no effect on the records of another system, and why."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of the command: what is to be judged, and how."""

    name: str | None
    input: Path | None
    output: Path | None
    late: Path | None
    window: str | None
    promise: Guarantee | None
    engine: str
    uncommitted: bool
    reference: bool
    follow: bool
    junit: Path | None
    runs: Path
    flow: str | None
    allow_vacuous: bool
    max_late: str | None
    until: str | None
    ignore_open: bool
    lateness: str | None
    columns: Sequence[str]
    short: Mapping[str, str | None]  # the values of --id, --time and --resource

    @property
    def of_recorded(self) -> dict[str, object]:
        """The options that make sense only for the records of another system, with the values given."""
        given: dict[str, object] = {"--input": self.input, "--output": self.output}
        given |= {"--late": self.late, "--window": self.window, "--until": self.until}
        given |= {"--lateness": self.lateness, "--ignore-open": self.ignore_open or None}
        given |= {"--column": self.columns or None}
        return given | {f"--{name}": value for name, value in self.short.items()}


def validate(asked: Asked, as_json: bool) -> int:
    """Judge, print the verdict, and return the exit code. Raises UsageError."""
    if asked.junit is not None:
        _check_writable(asked.junit)
    found = _recorded(asked) if asked.name is None else _run(asked, asked.name)
    if asked.junit is not None:
        write_junit(found, asked.junit)
    if as_json:
        print_json(to_json(found))
    else:
        _print(found)
    return EXIT[found.kept]


# Judging.


def _run(asked: Asked, name: str) -> Report:
    """Judge a run from its files."""
    from snapline.judge.evidence import Question
    from snapline.judge.run_directory import judge
    from snapline.rundir.directory import RunDirectory
    from snapline.rundir.program import load_flow

    for option, value in asked.of_recorded.items():
        if value is not None:
            raise UsageError(f"{option} is for outputs of other systems: leave it or {name} out")
    if asked.engine != AUTO:
        raise UsageError("--engine is for --input and --output: runs are judged in process")
    directory = RunDirectory.open(asked.runs, name)
    flow = load_flow(asked.flow) if asked.flow is not None else None
    question = Question(_promise(asked), asked.uncommitted, asked.reference, asked.allow_vacuous)
    if asked.follow:
        found = _followed(asked, directory, question, flow)
    else:
        with _telling() as tell:
            tell(f"judging {directory.name}")
            found = judge(directory, question, flow=flow)
    return _report(directory.name, _bounded(found, share_of(asked.max_late)))


def _bounded(found: "Judgement", max_late: float | None) -> "Judgement":
    """The judgement with `--max-late` applied: *no* if more than this share of the events is late."""
    if max_late is None:
        return found
    if found.judged is None:
        raise UsageError("--max-late is for outputs that name the events behind them (sst, mst)")
    judged, verdict = replace(found.judged, max_late=max_late), found.verdict
    if judged.is_too_late:
        because = report_of("", judged, found.sentences, found.promise).because
        answers: dict[str, Answer] = dict.fromkeys(verdict.guarantees, "no")
        if verdict.kept != "no":
            verdict = replace(verdict, because=because)
        verdict = replace(verdict, kept="no", guarantees=answers)
    return replace(found, judged=judged, verdict=verdict)


def share_of(text: str | None) -> float | None:
    """Read a share, such as `5%` or `0.05`. Raises UsageError."""
    if text is None:
        return None
    number, percent = (text[:-1], 100) if text.endswith("%") else (text, 1)
    try:
        share = float(number) / percent
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise UsageError(f"--max-late is a share from 0 to 1, written as 5% or 0.05, not {text!r}")
    return share


def time_of(text: str | None) -> int | None:
    """Read a time, in ms since 1970: such a number, or a date as in ISO 8601, in UTC. Raises UsageError."""
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        pass
    try:
        date = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(
            f"--until is an event time in ms, or a date as in 2026-03-01T12:00:00Z, not {text!r}"
        ) from error
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return (date - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _report(name: str, found: "Judgement") -> Report:
    verdict, by = found.verdict, f"in process, from the {found.view} output of the run"
    return Report(
        name,
        found.promise,
        verdict.because,
        {Guarantee(level): answer for level, answer in verdict.guarantees.items()},
        found.judged,
        found.sentences,
        tuple(f"{p.kind} {p.record}: {p.because}" for p in verdict.problems),
        found.figures,
        view=found.view,
        by=by if found.records is None else f"{by}, up to its last line: it is not over",
        faults=found.strikes,
        records=found.records,
        deviation=found.deviation,
    )


def _followed(
    asked: Asked, directory: "RunDirectory", question: "Question", flow: "Dataflow | None"
) -> "Judgement":
    """Judge a run while it goes on."""
    from snapline.cli.follow import follow

    if asked.uncommitted or asked.reference:
        option = "--uncommitted" if asked.uncommitted else "--reference"
        raise UsageError(f"{option} is for a run that is over: leave it or --follow out")
    return follow(directory, question, flow)


def _recorded(asked: Asked) -> Report:
    """Judge what another system took in and put out."""
    from snapline.systems.recorded.columns import naming
    from snapline.systems.recorded.judge import ENGINES, PROCESS_VALUES_MAX, WindowSpan, engine_for
    from snapline.systems.recorded.judge import judge_recorded as judge
    from snapline.systems.recorded.tables import open_recorded

    if asked.input is None or asked.output is None:
        raise UsageError(
            "say what to judge: a RUN ('snapline runs' lists them), or --input DIR --output DIR"
        )
    if asked.window is None:
        raise UsageError("--window is missing: the size of the windows of the output, as in 10s")
    for_runs = {
        "--follow": asked.follow,
        "--uncommitted": asked.uncommitted,
        "--reference": asked.reference,
        "--flow": asked.flow is not None,
        "--allow-vacuous": asked.allow_vacuous,
    }
    for option in (option for option, given in for_runs.items() if given):
        raise UsageError(f"{option} is for a RUN: of other systems only what they put out is known")
    if asked.engine not in (AUTO, *ENGINES):
        raise UsageError(f"--engine takes {AUTO}, {' or '.join(ENGINES)}, not {asked.engine!r}")
    lateness_ms = 0 if asked.lateness is None else millis(asked.lateness, "--lateness")
    until_ms, max_late = time_of(asked.until), share_of(asked.max_late)
    span = WindowSpan(
        millis(asked.window, "--window", least_ms=1), lateness_ms, until_ms, asked.ignore_open
    )
    names = naming(asked.columns, asked.short)
    promise = _promise(asked) or Guarantee.EXACTLY_ONCE
    if promise is Guarantee.BOUNDED_LOSS:
        raise UsageError(NOT_DECLARED)
    recorded = open_recorded(asked.input, asked.output, asked.late, names)
    chosen = next((name for name in ENGINES if name == asked.engine), engine_for(recorded))
    with _telling() as tell:
        report = judge(recorded, span, chosen, tell)
    where = {"process": "in process", "spark": "on Spark"}[report.engine]
    why = f"{recorded.values:,} events and claims"
    if asked.engine == AUTO:
        why += f"; Spark judges more than {PROCESS_VALUES_MAX:,}"
    name, by = str(asked.output), f"{where} ({why})"
    judged = replace(report.judged, max_late=max_late)
    return report_of(name, judged, report.sentences, promise, by=by)


def _promise(asked: Asked) -> Guarantee | None:
    if asked.promise is Guarantee.NOTHING:
        names = ", ".join(level.value for level in PROMISES)
        raise UsageError(f"--promise takes one of {names}: who promises nothing keeps it")
    return asked.promise


@contextmanager
def _telling() -> Iterator[Callable[[str], None]]:
    """Make a function that says what is being done: on a terminal in one line that vanishes."""
    console = messages()
    if not console.is_terminal:
        yield lambda text: console.print(f"{escape(text)} ...", soft_wrap=True)
        return
    with console.status("opening") as status:
        yield lambda text: status.update(escape(text))


# Printing.


def _print(found: Report) -> None:
    out = results()
    out.print(f"[bold]{escape(found.name)}[/], judged {escape(found.by)}", soft_wrap=True)
    out.print(_guarantees(found))
    if found.metrics is not None:
        print_phases(found.metrics)
    if found.judged is not None:
        _print_causes(found.judged, found.sentences)
    elif len(found.problems) > 1:
        for problem in found.problems[:5]:
            out.print(f"  {escape(problem)}", soft_wrap=True)
    if found.deviation is not None:
        out.print(f"[bold]deviation[/] {escape(deviation_text(found.deviation))}", soft_wrap=True)
    out.print(verdict_line(found.kept, found.because), soft_wrap=True)


def _guarantees(found: Report) -> Table:
    table = Table("guarantee", "kept", "", box=box.SIMPLE_HEAD, show_edge=False)
    for level, answer in found.guarantees.items():
        decides = "decides" if level is held_to(found.promised) else ""
        table.add_row(level.value, f"[{VERDICTS[answer][0]}]{answer}[/]", f"[dim]{decides}[/]")
    return table


def _print_causes(judged: Judged, sentences: Mapping[Cause, str]) -> None:
    out = results()
    out.print(
        f"reliability {reliability(judged)} of {plural(judged.inputs, 'event')}: {judged.lost:,} lost, "
        f"{judged.repeated:,} repeated; {plural(judged.outputs, 'output')}, {judged.late:,} late "
        f"({late_share(judged)})"
    )
    if judged.unjudged.events:
        rest = judged.unjudged
        windows = plural(rest.windows, "window that ends", "windows that end")
        out.print(f"not judged: {plural(rest.events, 'event')} in {windows} later")
    for cause in Cause:
        if cause in judged.causes:
            text = f"  [bold]{cause}[/] {judged.causes[cause]:,}"
            out.print(f"{text}  {escape(sentences.get(cause, ''))}", soft_wrap=True)


def _check_writable(file: Path) -> None:
    if not file.parent.is_dir():
        raise UsageError(f"cannot write {file}: there is no directory {file.parent}")
