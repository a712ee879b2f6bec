"""`snapline validate`: judges only, a run of Snapline's or what another system has recorded."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final
from xml.etree import ElementTree

import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from snapline.cli_tables import messages, print_json, results
from snapline.core.policy import Guarantee
from snapline.durations import millis
from snapline.errors import UsageError
from snapline.validate.causes import BREAKS, Cause
from snapline.validate.judged import PROMISES, Judged

EXIT: Final = {"yes": 0, "no": 1, "unknown": 3}
COLOURS: Final = {"yes": "green", "no": "red", "unknown": "yellow"}
VERDICTS: Final = {"yes": "KEPT", "no": "BROKEN", "unknown": "UNKNOWN"}
AUTO: Final = "auto"

EXAMPLES = """[bold]Examples[/bold]

The last run once more, from its files:
[cyan]snapline validate last[/cyan]

All that it ever wrote, published or not:
[cyan]snapline validate last --uncommitted[/cyan]

What another system took in and put out, as Parquet (columns: docs/validate.md):
[cyan]snapline validate --input in/ --output out/ --late late/ --window 10s[/cyan]

Hold it to at least once only, and write a report that a build server reads:
[cyan]snapline validate --input in/ --output out/ --window 10s --promise at-least-once --junit r.xml[/cyan]

Exit codes: 0 kept, 1 broken, 2 bad input, 3 unknown."""

NameArgument = Annotated[
    str | None, typer.Argument(metavar="[RUN|last]", help="A run that is over.")
]
InputOption = Annotated[
    Path | None,
    typer.Option("--input", metavar="DIR", help="What went in: Parquet with id, time, resource."),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output", metavar="DIR", help="What came out: Parquet with resource, window, count, ids."
    ),
]
LateOption = Annotated[
    Path | None,
    typer.Option("--late", metavar="DIR", help="What was left out as late: Parquet with id."),
]
WindowOption = Annotated[
    str | None, typer.Option("--window", metavar="D", help="The size of the windows, as in 10s.")
]
PromiseOption = Annotated[
    Guarantee | None,
    typer.Option(
        metavar="G",
        help="What decides: [cyan]exactly-once[/], [cyan]at-least-once[/] or [cyan]at-most-once[/].  "
        "[dim]default: what the run has promised, else exactly-once[/]",
    ),
]
EngineOption = Annotated[
    str,
    typer.Option(
        metavar="E",
        help="Where --input and --output are judged: [cyan]process[/], [cyan]spark[/], or "
        "[cyan]auto[/], by their size.",
    ),
]
UncommittedOption = Annotated[
    bool,
    typer.Option("--uncommitted", metavar=" ", help="RUN: all that it wrote, published or not."),
]
ReferenceOption = Annotated[
    bool,
    typer.Option(
        "--reference", metavar=" ", help="RUN: compare with runs of the flow without failures."
    ),
]
JUnitOption = Annotated[
    Path | None, typer.Option("--junit", metavar="FILE", help="Write a report as JUnit XML, too.")
]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be judged, and how, as it stands on the command line."""

    name: str | None
    input: Path | None
    output: Path | None
    late: Path | None
    window: str | None
    promise: Guarantee | None
    engine: str
    uncommitted: bool
    reference: bool
    junit: Path | None
    runs: Path


@dataclass(frozen=True, slots=True)
class Found:
    """The answer, whoever gave it."""

    what: str  # the run, or the output
    kept: str
    because: str
    guarantees: Mapping[str, str]
    promise: Guarantee
    by: str  # who judged, and why there
    judged: Judged | None = None
    sentences: Mapping[Cause, str] | None = None
    problems: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        document: dict[str, Any] = {
            "judged": self.what,
            "kept": self.kept,
            "promise": self.promise.value,
            "because": self.because,
            "guarantees": dict(self.guarantees),
            "by": self.by,
        }
        if self.judged is not None:
            document |= _figures(self.judged)
            document["causes"] = [
                {
                    **asdict(self.judged.witnesses[cause]),
                    "count": self.judged.causes[cause],
                    "sentence": (self.sentences or {}).get(cause),
                }
                for cause in Cause
                if cause in self.judged.causes
            ]
        else:
            document["problems"] = list(self.problems)
        return document


def _figures(judged: Judged) -> dict[str, Any]:
    names = ("inputs", "outputs", "late", "lost", "repeated", "reliable", "reliability")
    return {name: getattr(judged, name) for name in names}


def validate(asked: Asked, as_json: bool) -> int:
    """Judge, tell, and return the exit code. Raises UsageError."""
    if asked.junit is not None:
        _check_writable(asked.junit)
    found = _recorded(asked) if asked.name is None else _run(asked, asked.name)
    if asked.junit is not None:
        _write_junit(found, asked.junit)
    if as_json:
        print_json(found.to_json())
    else:
        _print(found)
    return EXIT[found.kept]


# Who judges.


def _run(asked: Asked, name: str) -> Found:
    """Judge a run from its files."""
    from snapline.runtime.rundir import RunDirectory
    from snapline.systems.judge_again import judge_again

    given = {"--input": asked.input, "--output": asked.output, "--late": asked.late}
    for option, value in {**given, "--window": asked.window}.items():
        if value is not None:
            raise UsageError(f"{option} is for outputs of other systems: leave it or {name} out")
    if asked.engine != AUTO:
        raise UsageError("--engine is for --input and --output: runs are judged in process")
    directory = RunDirectory.open(asked.runs, name)
    with _telling() as tell:
        tell(f"judging {directory.name}")
        again = judge_again(
            directory,
            _promise(asked),
            uncommitted=asked.uncommitted,
            reference=asked.reference,
        )
    verdict = again.verdict
    by = f"in process, from the {again.view} output of the run"
    texts = tuple(f"{p.kind} {p.record}: {p.because}" for p in verdict.problems)
    return Found(
        directory.name,
        verdict.kept,
        verdict.because,
        verdict.guarantees,
        again.promise,
        by,
        again.judged,
        again.sentences,
        texts,
    )


def _recorded(asked: Asked) -> Found:
    """Judge what another system took in and put out."""
    from snapline.systems.judge_recorded import ENGINES, PROCESS_VALUES_MAX, engine_for
    from snapline.systems.judge_recorded import judge_recorded as judge
    from snapline.systems.recorded import open_recorded

    if asked.input is None or asked.output is None:
        raise UsageError(
            "say what to judge: a RUN ('snapline runs' lists them), or --input DIR --output DIR"
        )
    if asked.window is None:
        raise UsageError("--window is missing: the size of the windows of the output, as in 10s")
    if asked.uncommitted or asked.reference:
        option = "--uncommitted" if asked.uncommitted else "--reference"
        raise UsageError(f"{option} is for a RUN: of other systems only what they put out is known")
    if asked.engine not in (AUTO, *ENGINES):
        raise UsageError(f"--engine takes {AUTO}, {' or '.join(ENGINES)}, not {asked.engine!r}")
    size_ms = millis(asked.window, "--window")
    recorded = open_recorded(asked.input, asked.output, asked.late)
    chosen = next((name for name in ENGINES if name == asked.engine), engine_for(recorded))
    with _telling() as tell:
        report = judge(recorded, size_ms, chosen, tell)
    where = {"process": "in process", "spark": "on Spark"}[report.engine]
    why = f"{recorded.values:,} events and claims"
    if asked.engine == AUTO:
        why += f"; Spark judges more than {PROCESS_VALUES_MAX:,}"
    promise = _promise(asked) or Guarantee.EXACTLY_ONCE
    judged = report.judged
    leading = next((c for c in report.sentences if promise in BREAKS[c]), None)
    if leading is None:
        because = f"{judged.reliable:,} of {judged.inputs:,} events were counted once, or are late"
    else:
        because = f"{leading}: {report.sentences[leading]}"
    return Found(
        str(asked.output),
        judged.kept(promise),
        because,
        {level.value: judged.kept(level) for level in PROMISES},
        promise,
        f"{where} ({why})",
        judged,
        report.sentences,
    )


def _promise(asked: Asked) -> Guarantee | None:
    if asked.promise is Guarantee.NOTHING:
        names = ", ".join(level.value for level in PROMISES)
        raise UsageError(f"--promise takes one of {names}: who promises nothing keeps it")
    return asked.promise


@contextmanager
def _telling() -> Iterator[Callable[[str], None]]:
    """Say what is being done: in one line that goes away on a terminal, else in a line each."""
    console = messages()
    if not console.is_terminal:
        yield lambda text: console.print(f"{escape(text)} ...", soft_wrap=True)
        return
    with console.status("opening") as status:
        yield lambda text: status.update(escape(text))


# What is said.


def _print(found: Found) -> None:
    out = results()
    out.print(f"[bold]{escape(found.what)}[/], judged {escape(found.by)}", soft_wrap=True)
    out.print(_guarantees(found))
    if found.judged is not None:
        _print_causes(found.judged, found.sentences or {})
    elif len(found.problems) > 1:
        for problem in found.problems[:5]:
            out.print(f"  {escape(problem)}", soft_wrap=True)
    colour, word = COLOURS[found.kept], VERDICTS[found.kept]
    out.print(f"[bold {colour}]{word}[/]: {escape(found.because)}", soft_wrap=True)


def _guarantees(found: Found) -> Table:
    table = Table("guarantee", "kept", "", box=box.SIMPLE_HEAD, show_edge=False)
    for level in PROMISES:
        answer = found.guarantees[level.value]
        decides = "decides" if level is found.promise else ""
        table.add_row(level.value, f"[{COLOURS[answer]}]{answer}[/]", f"[dim]{decides}[/]")
    return table


def _print_causes(judged: Judged, sentences: Mapping[Cause, str]) -> None:
    out = results()
    out.print(
        f"reliability {percent(judged)} of {judged.inputs:,} events: {judged.lost:,} lost, "
        f"{judged.repeated:,} repeated; {judged.outputs:,} outputs, {judged.late:,} late"
    )
    for cause in Cause:
        if cause in judged.causes:
            text = f"  [bold]{cause}[/] {judged.causes[cause]:,}"
            out.print(f"{text}  {escape(sentences.get(cause, ''))}", soft_wrap=True)


def percent(judged: Judged) -> str:
    """The reliability; what is shown as 100 % is 100 %."""
    if judged.reliable == judged.inputs:
        return "100 %"
    return f"{min(judged.reliability, 99.9999):.4f} %"


# JUnit.


def _check_writable(file: Path) -> None:
    if not file.parent.is_dir():
        raise UsageError(f"cannot write {file}: there is no directory {file.parent}")


def _write_junit(found: Found, file: Path) -> None:
    """One test for each guarantee; those that nobody promised are told, but do not fail."""
    suite = ElementTree.Element("testsuite", name=f"snapline validate {found.what}")
    counts = {"tests": len(PROMISES), "failures": int(found.kept == "no"), "errors": 0}
    suite.attrib.update({name: str(count) for name, count in counts.items()})
    for level in PROMISES:
        case = ElementTree.SubElement(suite, "testcase", classname="snapline", name=level.value)
        answer = found.guarantees[level.value]
        if level is found.promise and answer == "no":
            ElementTree.SubElement(case, "failure", message=found.because).text = _story(found)
        elif answer != "yes":
            why = found.because if answer == "unknown" else "not promised, and not kept"
            ElementTree.SubElement(case, "skipped", message=why)
    suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
    try:
        ElementTree.ElementTree(suite).write(file, "utf-8", xml_declaration=True)
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}") from error


def _story(found: Found) -> str:
    if found.judged is None or not found.sentences:
        return "\n".join(found.problems)
    counts = found.judged.causes
    return "\n".join(f"{c} ({counts[c]}): {text}" for c, text in found.sentences.items())
