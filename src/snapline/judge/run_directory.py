"""The one judge of a run: every verdict is made here, from the run's directory, when it ends or later.

`run` asks when a run is over, `validate` whenever somebody doubts it or has another question: what was
written but never published, another guarantee. Both get the same answer, because both come here. Nothing
is started and no file is changed.

A *yes* is only given for what was proved. A run whose faults never struck, or struck when there was nothing
to lose, and a run that put out nothing are *unknown* (`chaos.strikes`), whatever their output looks like.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from snapline.batch import Batch, concat
from snapline.chaos.strikes import Strike, vacuous
from snapline.core.policy import Guarantee
from snapline.dataflow.graph import Dataflow, deploy
from snapline.errors import StorageError, UsageError
from snapline.ids import Millis
from snapline.journal.codec import happened_of
from snapline.journal.entry import Happened
from snapline.journal.fault_happenings import FaultMissed
from snapline.judge.expected import judge_output
from snapline.judge.history import History, history_of, history_of_system
from snapline.judge.lineage import LineageReport, judge_lineage
from snapline.judge.reader import BrokenChain, read_sinks
from snapline.judge.report_files import held_to
from snapline.judge.tables import saved_output, saved_tables, stamped
from snapline.judge.verdict import UNKNOWN, Answers, Verdict, rows_as, verdict_of
from snapline.metrics.reliability import LineageFigures
from snapline.protocols import PROTOCOLS
from snapline.rundir.directory import RunDirectory
from snapline.rundir.output_rows import position_label, public_view
from snapline.rundir.program import build_job, program_of_run
from snapline.rundir.results import check_version
from snapline.rundir.spec import OWN, Spec, spec_of
from snapline.storage.api import View
from snapline.validate.causes import Cause
from snapline.validate.judged import Answer, Judged
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Problem
from snapline.workload.lineage.echoes import wrong_echoes
from snapline.workload.lineage.oracle import LATE, SINK

NO_PROGRAM: Final = (
    "the dataflow '{flow}' is that of a program, which nobody but that program can build again"
)
_STAMPS: Final = ("position", "written")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about a run, beside whether it kept its promise."""

    promise: Guarantee | None = None  # None: what the run has promised
    uncommitted: bool = False  # judge all that was written, published or not
    reference: bool = False  # hold it against runs without failures
    allow_vacuous: bool = False  # a run that proved nothing may be a yes


@dataclass(frozen=True, slots=True)
class RunEnding:
    """How a run ended, as far as its other files do not show it; `result.json` keeps it for later."""

    problem: str | None = None  # why it did not come to its end
    events: Sequence[Happened] = ()  # of another system: what happened to it
    end_ms: Millis = 0  # of another system: when it was over
    remarks: Sequence[str] = ()  # of another system: its own account of what it repeated or dropped
    promise: Guarantee = Guarantee.EXACTLY_ONCE  # of another system: what it promises


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a run and all that belongs to it."""

    verdict: Verdict
    promise: Guarantee  # the guarantee that decides
    view: View
    rows: Mapping[str, int] = field(default_factory=dict)  # how many rows were judged, per sink
    judged: Judged | None = None  # where outputs name the inputs behind them
    sentences: Mapping[Cause, str] = field(default_factory=dict)
    figures: LineageFigures | None = None  # PGVal's, with lineage
    strikes: tuple[Strike, ...] = ()  # what became of the faults


def judge(
    directory: RunDirectory,
    question: Question | None = None,
    *,
    ending: RunEnding | None = None,
    flow: Dataflow | None = None,
    report: LineageReport | None = None,
) -> Judgement:
    """Judge a run from its files. Raises UsageError if it is not over, or cannot be judged.

    `ending` is given by whoever has just ended the run, `flow` by whoever holds the dataflow, `report` by
    whoever judged the output while it came (`judge.live`).
    """
    asked = question or Question()
    spec = spec_of(directory)
    ended = ending or _read_ending(directory, spec)
    if spec.system != OWN:
        found, history = _of_system(directory, spec, asked, ended)
    else:
        found, history = _of_ours(directory, spec, asked, ended, flow, report)
    judgement = replace(found, strikes=history.strikes)
    doubt = None if asked.allow_vacuous or spec.allow_vacuous else _doubt(judgement, history, spec)
    return judgement if doubt is None else _doubted(judgement, doubt)


def _read_ending(directory: RunDirectory, spec: Spec) -> RunEnding:
    result = directory.result()
    if result is None:
        again = (
            f"'snapline run --resume {directory.name}' goes on with it; --follow judges meanwhile"
        )
        why = f" ({why})" if (why := directory.why_not_over()) else ""
        raise UsageError(f"{directory.name} is not over{why}: {again}")
    if result.get("run") not in (None, directory.digest("run.json")):
        raise UsageError(
            f"{directory.path / 'run.json'} was changed after the run: nobody knows any more what was run"
        )
    check_version(directory, result)
    if spec.system == OWN:
        return RunEnding(result.get("problem"))
    try:
        events = [happened_of(written) for written in result["events"]]
        end_ms = round(result["metrics"]["duration_s"] * 1000)
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(f"{directory.path / 'result.json'} is damaged: {error}") from error
    return RunEnding(result.get("problem"), events, end_ms)


# Whether it proved anything.


def _doubt(judgement: Judgement, history: History, spec: Spec) -> str | None:
    """Why a yes would be worth nothing, in one sentence; None if it is worth something."""
    if history.gap is not None and spec.faults:
        return f"nobody knows which faults struck, because {history.gap}"
    return vacuous(
        history.strikes,
        drawn=spec.drawn,
        losses_ms=history.losses_ms,
        first_line_ms=history.first_line_ms,
        rows=sum(judgement.rows.values()),
    )


def _doubted(judgement: Judgement, why: str) -> Judgement:
    judged = judgement.judged
    if judged is not None and judged.undecided is None and not judged.causes:
        judged = replace(judged, undecided=why)
    return replace(judgement, verdict=judgement.verdict.doubted(why), judged=judged)


# Snapline's own runs.


def _of_ours(
    directory: RunDirectory,
    spec: Spec,
    asked: Question,
    ended: RunEnding,
    flow: Dataflow | None,
    report: LineageReport | None,
) -> tuple[Judgement, History]:
    view: View = "uncommitted" if asked.uncommitted else public_view(spec.protocol)
    history = history_of(directory, spec.faults)
    if flow is None and spec.flow not in WORKLOADS and ".py:" not in spec.flow:
        told = Verdict("unknown", NO_PROGRAM.format(flow=spec.flow))
        return Judgement(told, asked.promise or _promise(spec), view), history
    program = program_of_run(spec, flow)
    job = build_job(spec, program)
    promise = asked.promise or job.guarantee
    try:
        outputs = read_sinks(directory, job.deployment.sinks, view)
    except StorageError as error:
        return Judgement(_unreadable(error, promise), promise, view), history
    rows = {sink: len(batch) for sink, batch in outputs.items()}
    history = _with_output(history, spec, outputs)
    reference = asked.reference or spec.reference
    if program.lineage is not None and not reference:
        report = report or judge_lineage(
            program.lineage,
            outputs[SINK],
            outputs[LATE],
            history.faults,
            history.end_ms,
            position_label,
        )
        judgement = _by_lineage(report, ended.problem, promise, view, rows)
        events = program.lineage.events()
        return _with_echoes(
            judgement,
            [*wrong_echoes(events, outputs[SINK], outputs[LATE], program.lineage.window_ms)],
        ), history
    plain = {sink: _without_stamps(batch) for sink, batch in outputs.items()}
    held = replace(job, guarantee=promise)
    verdict = judge_output(program, held, plain, reference=reference, problem=ended.problem)
    return Judgement(verdict, promise, view, rows), history


def _promise(spec: Spec) -> Guarantee:
    return Guarantee(spec.guarantee or PROTOCOLS[spec.protocol].guarantees[0])


def _unreadable(error: StorageError, promise: Guarantee) -> Verdict:
    """The verdict on an output that cannot be read.

    A broken chain breaks exactly once, because rows are seen twice or never; which of the two, and so
    whether a weaker promise was kept, is unknown. Damage hides what was there.
    """
    if not isinstance(error, BrokenChain):
        return Verdict("unknown", f"the output cannot be read: {error}")
    exactly = Guarantee.EXACTLY_ONCE
    answers: Answers = {**UNKNOWN, exactly.value: "no"}
    kept: Answer = "no" if held_to(promise) is exactly else "unknown"
    return Verdict(kept, f"the chain of published output is broken: {error}", (), answers)


def _with_output(history: History, spec: Spec, outputs: Mapping[str, Batch]) -> History:
    """The history of a run; without lines, the time of the first output stands for that of a line."""
    if PROTOCOLS[spec.protocol].checkpoints:
        return history
    return replace(history, first_line_ms=_first_written(outputs.values()))


def _first_written(outputs: Iterable[Batch]) -> Millis | None:
    return min((int(batch["written"].min()) for batch in outputs if len(batch)), default=None)


def _without_stamps(batch: Batch) -> Batch:
    return batch.select(*(name for name in batch.columns if name not in _STAMPS))


def _by_lineage(
    report: LineageReport,
    problem: str | None,
    promise: Guarantee,
    view: View,
    rows: Mapping[str, int],
) -> Judgement:
    if problem is not None:  # the run was cut short, so what is missing might still have come
        report = replace(report, judged=replace(report.judged, undecided=problem))
    verdict = report.verdict(promise)
    return Judgement(verdict, promise, view, rows, report.judged, report.sentences, report.figures)


def _with_echoes(judgement: Judgement, wrong: Sequence[Problem]) -> Judgement:
    """Answer no to every guarantee if rows repeat something of their events wrongly."""
    verdict = judgement.verdict
    if not wrong or verdict.kept == "no":
        return judgement
    because = f"{wrong[0].kind} {wrong[0].record}: {wrong[0].because}"
    answers: Answers = dict.fromkeys(verdict.guarantees, "no")
    return replace(judgement, verdict=Verdict("no", because, tuple(wrong), answers))


# Other systems.


def _of_system(
    directory: RunDirectory, spec: Spec, asked: Question, ended: RunEnding
) -> tuple[Judgement, History]:
    if asked.uncommitted or asked.reference:
        option = "--uncommitted" if asked.uncommitted else "--reference"
        raise UsageError(f"{option} is for Snapline's own runs, not for those of {spec.system}")
    promise = asked.promise or Guarantee(spec.guarantee or Guarantee.EXACTLY_ONCE)
    history = history_of_system(ended.events, ended.end_ms, spec.faults)
    by_lineage = WORKLOADS[spec.flow].lineage is not None
    judged = _system_by_lineage if by_lineage else _system_by_oracle
    found, first_ms = judged(directory, spec, ended, promise, history)
    known = (ms for ms in (first_ms, history.first_line_ms) if ms is not None)
    history = replace(history, first_line_ms=min(known, default=None))
    because = "; ".join([found.verdict.because.rstrip("."), *_remarks(found.verdict, ended)])
    return replace(found, verdict=replace(found.verdict, because=because)), history


def _system_by_lineage(
    directory: RunDirectory, spec: Spec, ended: RunEnding, promise: Guarantee, history: History
) -> tuple[Judgement, Millis | None]:
    tables, workload = saved_tables(directory.path, SINK), WORKLOADS[spec.flow]
    inputs = tables.inputs
    if inputs is None:
        raise UsageError(f"{directory.path / 'input'} is gone: the run cannot be judged again")
    assert workload.lineage is not None
    lineage = replace(workload.lineage(spec.params), events=lambda: inputs)
    late = Batch({}, 0) if tables.late is None else tables.late
    outputs = tables.outputs[SINK]
    report = judge_lineage(lineage, outputs, late, history.faults, history.end_ms)
    judgement = _by_lineage(report, ended.problem, promise, "committed", tables.rows)
    return judgement, _first_written([outputs, late])


def _system_by_oracle(
    directory: RunDirectory, spec: Spec, ended: RunEnding, promise: Guarantee, history: History
) -> tuple[Judgement, Millis | None]:
    parts = [*saved_output(directory.path)[1]]
    output = stamped(concat(parts) if parts else Batch({}, 0), directory.path / "output")
    workload = WORKLOADS[spec.flow]
    sink = next(iter(deploy(workload.build(spec.params), 1).sinks))
    if ended.problem is not None:
        verdict = Verdict("unknown", ended.problem)
    else:
        plain = {sink: _without_stamps(output)}
        verdict = verdict_of(
            lambda level: workload.judge(spec.params, plain, {}, level),
            promise,
            rows_as(len(output), "the oracle expects"),
        )
    judgement = Judgement(verdict, promise, "committed", {sink: len(output)})
    return judgement, _first_written([output])


def _remarks(verdict: Verdict, ended: RunEnding) -> list[str]:
    """Remarks that explain a verdict: the system's own account, and faults that found it down."""
    said = [*ended.remarks]
    if verdict.kept == "no" and ended.promise is not Guarantee.EXACTLY_ONCE:
        said.append(f"it promises no more than {ended.promise.value}")
    missed = (e.what.fault for e in ended.events if isinstance(e.what, FaultMissed))
    said.extend(f"'{fault}' found nobody: the system was down already" for fault in missed)
    return said
