"""The one judge of a run: every verdict is made here, from the run's directory, when it ends or later.

`run` asks when a run is over, `validate` whenever somebody doubts it or has another question: what was
written but never published, another guarantee. Both get the same answer, because both come here. Nothing
is started and no file is changed.

First the evidence is gathered: what came out, and what should have. Then it is judged, by the lineage that
outputs name, by the workload's oracle or by runs without failures. Last it is asked what that proves. A
*yes* is only given for what was proved: a run whose faults never struck, or struck when there was nothing
to lose, and a run that put out nothing are *unknown* (`chaos.strikes`), whatever their output looks like.

A run that is not over, and that nobody goes on with, is judged up to its last line: what is public must be
what the dataflow makes of the records that it had read by then, without the end of time (`judge.prefix`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from snapline.batch import Batch
from snapline.chaos.strikes import Strike, vacuous
from snapline.core.guarantee import Guarantee
from snapline.dataflow.graph import Dataflow
from snapline.engine.reference.reference import UNBOUNDED
from snapline.errors import StorageError, UsageError
from snapline.journal.codec import happened_of
from snapline.judge.by_reference import input_deleted, judge_by_reference, stream_doubt
from snapline.judge.evidence import (
    Question,
    RunEnding,
    RunEvidence,
    deviation_in,
    first_written,
)
from snapline.judge.history import History, history_of
from snapline.judge.lineage import LineageReport, judge_lineage, too_early
from snapline.judge.prefix.cut import LineCut, NoCut
from snapline.judge.prefix.last_line import cut_of, line_of
from snapline.judge.reader import BrokenChain, Deleted, read_deleted, read_sinks
from snapline.judge.report_files import held_to
from snapline.judge.system_evidence import evidence_of_system, with_remarks
from snapline.judge.verdict import (
    UNKNOWN,
    Answers,
    Verdict,
    all_broken,
    first_said,
    judge_retained,
    rows_as,
    verdict_of,
)
from snapline.loss.judge import LossAccount
from snapline.loss.outcome import NO_EXCUSES, NO_RATE, judge_run_losses
from snapline.metrics.deviation import DeviationFigures
from snapline.metrics.reliability import LineageFigures
from snapline.protocols import PROTOCOLS
from snapline.rundir.directory import RunDirectory
from snapline.rundir.output_rows import position_label, public_view
from snapline.rundir.program import Program, build_job, guarantee_of, program_of_run
from snapline.rundir.results import check_version
from snapline.rundir.spec import OWN, Spec, spec_of
from snapline.storage.api import View
from snapline.validate.causes import Cause
from snapline.validate.judged import Answer, Judged
from snapline.wording import plural
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Lineage
from snapline.workload.lineage.echoes import wrong_echoes
from snapline.workload.lineage.oracle import LATE, SINK

NO_PROGRAM: Final = (
    "the dataflow '{flow}' is that of a program, which nobody but that program can build again"
)
NO_ORACLE: Final = (
    "nobody knows what this dataflow should put out: reference=True (--reference) compares it with runs "
    "without failures"
)
NO_PREFIX: Final = (
    "the oracle of '{flow}' judges whole inputs, and this run is not over: reference=True (--reference) "
    "compares it with runs without failures"
)


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
    #: of a run that is not over: how many records it had read by the line up to which it was judged
    records: int | None = None
    strikes: tuple[Strike, ...] = ()  # what became of the faults
    losses: LossAccount | None = None  # of a run that may lose something
    deviation: DeviationFigures | None = None  # of a run whose answer may be off


def judge(
    directory: RunDirectory,
    question: Question | None = None,
    *,
    ending: RunEnding | None = None,
    program: Program | None = None,
    flow: Dataflow | None = None,
    report: LineageReport | None = None,
) -> Judgement:
    """Judge a run from its files. Raises UsageError if it still goes on, or cannot be judged.

    `ending` and `program` are given by whoever has just ended the run, `flow` by whoever holds only the
    dataflow, `report` by whoever judged the output while it came (`judge.live`).
    """
    asked = question or Question()
    spec = spec_of(directory)
    ended = ending or _read_ending(directory, spec)
    if spec.system == OWN:
        found = program or _program(directory, spec, flow)
        evidence = _evidence(directory, spec, asked, found, ended.line)
    else:
        evidence = evidence_of_system(directory, spec, asked, ended)
    reference = asked.reference or spec.reference
    bounded = evidence.promise is Guarantee.BOUNDED_LOSS
    if bounded:  # first as if it had promised more, then what it lost
        evidence = replace(evidence, promise=Guarantee.EXACTLY_ONCE)
    whole = not spec.endless or evidence.cut is not None
    if evidence.lineage is not None and not reference and whole:
        judgement = _by_lineage(evidence, evidence.lineage, spec, ended.problem, report)
    else:
        verdict = evidence.failed or _by_output(evidence, spec, ended.problem, reference)
        judgement = Judgement(verdict, evidence.promise, evidence.view, evidence.rows)
    if bounded:
        judgement = _with_losses(judgement, evidence, spec, ended.problem)
    if spec.system != OWN:
        judgement = replace(judgement, verdict=with_remarks(judgement.verdict, ended))
    off = deviation_in(evidence, spec, ended.problem)
    judgement = replace(judgement, strikes=evidence.history.strikes, deviation=off)
    if evidence.cut is not None:
        judgement = _of_prefix(judgement, evidence.cut)
    doubt = None if asked.allow_vacuous or spec.allow_vacuous else _doubt(evidence, spec)
    return judgement if doubt is None else _doubted(judgement, doubt)


# The evidence.


def _read_ending(directory: RunDirectory, spec: Spec) -> RunEnding:
    result = directory.result()
    if result is None:
        if spec.system == OWN and (line := line_of(directory)) is not None:
            return RunEnding(line=line)
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


def _program(directory: RunDirectory, spec: Spec, flow: Dataflow | None) -> Program | None:
    """The program of a run that is judged later; None if only the program that held it can build it."""
    if flow is None and spec.flow not in WORKLOADS and ".py:" not in spec.flow:
        return None
    return program_of_run(spec, flow, directory)


def _evidence(
    directory: RunDirectory,
    spec: Spec,
    asked: Question,
    program: Program | None,
    line: int | None,
) -> RunEvidence:
    """Read what one of our own runs has put out, as a reader of its output would.

    `line` is the last decision of a run that is not over: it is judged up to there.
    """
    if line is not None and asked.uncommitted:
        raise UsageError(
            f"{directory.name} is not over, and is judged up to its last line: --uncommitted is for a run "
            "that is over"
        )
    promised = guarantee_of(spec)
    promise = asked.promise or promised
    view: View = "uncommitted" if asked.uncommitted else public_view(spec.protocol)
    # Journals are long: they are read only if something depends on what happened.
    eventful = spec.faults or (program is not None and program.lineage is not None)
    eventful = eventful or promise is Guarantee.BOUNDED_LOSS
    history = history_of(directory, spec.faults) if eventful else History()
    if program is None:
        unknown = Verdict("unknown", NO_PROGRAM.format(flow=spec.flow))
        return RunEvidence(promise, view, history, failed=unknown)
    try:
        outputs = read_sinks(directory, program.sinks(spec.slots, dict(spec.pools)), view)
        deleted = read_deleted(directory.path / "output")
    except StorageError as error:
        return RunEvidence(promise, view, history, failed=_unreadable(error, promise))
    alone = program.judge is not None and program.lineage is None
    if deleted is not None and (asked.reference or spec.reference or not alone):
        unknown = _incomparable(deleted)
        return RunEvidence(promise, view, history, outputs=outputs, failed=unknown)
    if PROTOCOLS[spec.protocol].publishes_at_once:
        # Without lines, the time of the first output stands for that of the first line.
        history = replace(history, first_line_ms=first_written(outputs.values()))
    evidence = RunEvidence(promise, view, history, program, outputs, deleted=deleted)
    if line is None:
        return evidence
    try:
        cut = cut_of(directory, spec, program, line)
    except NoCut as why:
        return replace(evidence, failed=Verdict("unknown", str(why)))
    return replace(evidence, program=program.up_to(cut.offsets), cut=cut)


def _incomparable(deleted: Deleted) -> Verdict:
    """The verdict where only whole outputs can be compared, and old rows are gone."""
    rows = plural(sum(deleted.rows.values()), "row")
    because = f"{rows} of output published before {deleted.until} were deleted by retain"
    return Verdict("unknown", f"{because}, and only whole outputs can be compared here")


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


# The verdict.


def _by_output(evidence: RunEvidence, spec: Spec, problem: str | None, reference: bool) -> Verdict:
    """Judge output that does not name its inputs: by the workload's oracle, or by runs without failures."""
    if problem is not None:  # the run was cut short, so what is missing might still have come
        return Verdict("unknown", problem)
    program, promise, cut = evidence.program, evidence.promise, evidence.cut
    assert program is not None
    if deleted := input_deleted(program.flow):
        return Verdict("unknown", deleted)
    outputs = {sink: output.rows for sink, output in evidence.outputs.items()}
    if reference:
        saves = PROTOCOLS[spec.protocol].saves
        verdict = judge_by_reference(
            program.flow,
            spec.slots,
            outputs,
            promise,
            saves=saves,
            watermarks=UNBOUNDED if cut is None else cut.watermarks,
        )
        doubt = stream_doubt(program.flow) if verdict.kept == "no" else None
        return verdict if doubt is None else Verdict("unknown", doubt)
    if program.judge is None:
        known = cut is not None and program.given is None
        return Verdict("unknown", NO_PREFIX.format(flow=spec.flow) if known else NO_ORACLE)
    problems_at, left = partial(program.judge, outputs), sum(evidence.rows.values())
    if (gone := evidence.deleted) is not None:
        return judge_retained(problems_at, promise, left, sum(gone.rows.values()), gone.until)
    right = rows_as(left, "the oracle expects")
    return verdict_of(problems_at, promise, right, program.doubts)


def _by_lineage(
    evidence: RunEvidence,
    lineage: Lineage,
    spec: Spec,
    problem: str | None,
    report: LineageReport | None,
) -> Judgement:
    """Judge output that names the inputs behind it; what our own rows repeat of them has to be right."""
    outputs = {sink: output.stamped for sink, output in evidence.outputs.items()}
    rows, late = outputs[SINK], outputs.get(LATE, Batch({}, 0))
    history, own, cut = evidence.history, spec.system == OWN, evidence.cut
    found = report or judge_lineage(
        lineage,
        rows,
        late,
        history.faults,
        history.end_ms,
        position_label if own else str,
        None if cut is None else cut.passed_ms - lineage.lateness_ms,
    )
    if problem is not None:  # the run was cut short, so what is missing might still have come
        found = replace(found, judged=replace(found.judged, undecided=problem))
    verdict = found.verdict(evidence.promise)
    if own and verdict.kept != "no":
        wrong = [*wrong_echoes(lineage.events(), rows, late, lineage.window_ms)]
        if cut is not None:
            wrong += too_early(rows, late, lineage, cut.reached_ms)
        verdict = all_broken(verdict, tuple(wrong))
    return Judgement(
        verdict,
        evidence.promise,
        evidence.view,
        evidence.rows,
        found.judged,
        found.sentences,
        found.figures,
    )


def _with_losses(
    judgement: Judgement, evidence: RunEvidence, spec: Spec, problem: str | None
) -> Judgement:
    """The same judgement with the verdict on bounded loss, which decides."""
    level, program, history = Guarantee.BOUNDED_LOSS, evidence.program, evidence.history
    answers = judgement.verdict.guarantees
    if doubt := _loss_doubt(evidence, spec, problem):
        verdict = Verdict("unknown", doubt, (), {**answers, level.value: "unknown"})
        return replace(judgement, promise=level, verdict=verdict)
    assert program is not None
    assert program.judges_with is not None
    judges_with = program.judges_with
    rows = {sink: output.rows for sink, output in evidence.outputs.items()}
    found = judge_run_losses(
        build_job(spec, program),
        history.declared,
        history.strikes,
        [output.written for output in evidence.outputs.values() if len(output.stamps)],
        lambda excuses: judges_with(excuses)[0](rows, level),
    )
    wrong = found.account.problems
    doubts = program.doubts if found.account.losses else None
    doubt = None if doubts is None else doubts(level)
    kept: Answer = "no" if wrong else "unknown" if doubt else "yes"
    because = first_said(wrong, level) if wrong else doubt or found.because
    verdict = Verdict(kept, because, wrong, {**answers, level.value: kept})
    return replace(judgement, promise=level, verdict=verdict, losses=found.account)


def _loss_doubt(evidence: RunEvidence, spec: Spec, problem: str | None) -> str | None:
    """Why nobody can say what a run lost; None if somebody can."""
    history, failed = evidence.history, evidence.failed
    if failed is not None or problem is not None:
        return failed.because if failed is not None else problem
    if history.gap is not None:
        return f"nobody knows what the run declared as lost, because {history.gap}"
    able = evidence.program is not None and evidence.program.judges_with is not None
    if not able or evidence.cut is not None or evidence.deleted is not None:
        return NO_EXCUSES.format(flow=spec.flow)
    return NO_RATE if history.declared and spec.params.at_once else None


def _of_prefix(judgement: Judgement, cut: LineCut) -> Judgement:
    """Say of a judgement that it is on what a run had put out by its last line, and that it can go on."""
    verdict = judgement.verdict
    if verdict.kept == "yes":
        read = f"up to its last line, by which {plural(cut.records, 'record')} had been read"
        verdict = replace(verdict, because=f"{verdict.because}, {read}; the run can go on")
    return replace(judgement, verdict=verdict, records=cut.records)


# Whether it proved anything.


def _doubt(evidence: RunEvidence, spec: Spec) -> str | None:
    """Why a yes would be worth nothing, in one sentence; None if it is worth something."""
    history = evidence.history
    if history.gap is not None and spec.faults:
        return f"nobody knows which faults struck, because {history.gap}"
    return vacuous(
        history.strikes,
        drawn=spec.drawn,
        losses_ms=history.losses_ms,
        first_line_ms=history.first_line_ms,
        rows=sum(evidence.rows.values()),
    )


def _doubted(judgement: Judgement, why: str) -> Judgement:
    judged = judgement.judged
    if judged is not None and judged.undecided is None and not judged.causes:
        judged = replace(judged, undecided=why)
    return replace(judgement, verdict=judgement.verdict.doubted(why), judged=judged)
