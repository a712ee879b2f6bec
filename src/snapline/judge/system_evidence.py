"""The evidence of a run of another system: its input and output as saved, and what happened to it.

Such a run has no journal and no published chain. What a reader of its sink saw lies in the run directory as
Parquet (`judge.tables`); what happened to it was seen from outside, and is in its ending.
"""

from dataclasses import replace

from snapline.batch import Batch, concat
from snapline.core.guarantee import Guarantee
from snapline.errors import UsageError
from snapline.journal.fault_happenings import FaultMissed
from snapline.judge.evidence import Question, RunEnding, RunEvidence, first_written
from snapline.judge.history import history_of_system
from snapline.judge.reader import SinkRows
from snapline.judge.report_files import NOT_DECLARED
from snapline.judge.tables import saved_output, saved_tables, stamped
from snapline.judge.verdict import Verdict
from snapline.rundir.directory import RunDirectory
from snapline.rundir.program import Program, find_program
from snapline.rundir.spec import Spec
from snapline.workload.common.base import Lineage
from snapline.workload.lineage.oracle import LATE, SINK


def evidence_of_system(
    directory: RunDirectory, spec: Spec, asked: Question, ended: RunEnding
) -> RunEvidence:
    """Read what a run of another system has left. Raises UsageError."""
    if asked.uncommitted or asked.reference:
        option = "--uncommitted" if asked.uncommitted else "--reference"
        raise UsageError(f"{option} is for Snapline's own runs, not for those of {spec.system}")
    promise = asked.promise or Guarantee(spec.guarantee or Guarantee.EXACTLY_ONCE)
    if promise is Guarantee.BOUNDED_LOSS:
        raise UsageError(NOT_DECLARED)
    history = history_of_system(ended.events, ended.end_ms, spec.faults)
    program = find_program(spec)
    if program.lineage is None:
        outputs = _output(directory, program)
    else:
        lineage, outputs = _with_lineage(directory, program.lineage)
        program = replace(program, lineage=lineage)
    known = (first_written(outputs.values()), history.first_line_ms)
    first_ms = min((ms for ms in known if ms is not None), default=None)
    history = replace(history, first_line_ms=first_ms)
    return RunEvidence(promise, "committed", history, program, outputs)


def _output(directory: RunDirectory, program: Program) -> dict[str, SinkRows]:
    parts = [*saved_output(directory.path)[1]]
    output = stamped(concat(parts) if parts else Batch({}, 0), directory.path / "output")
    return {next(iter(program.sinks(1))): SinkRows.of_stamped(output)}


def _with_lineage(directory: RunDirectory, lineage: Lineage) -> tuple[Lineage, dict[str, SinkRows]]:
    """The output, and the lineage with the input that the system really got."""
    tables = saved_tables(directory.path, SINK)
    inputs = tables.inputs
    if inputs is None:
        raise UsageError(f"{directory.path / 'input'} is gone: the run cannot be judged again")
    late = {} if tables.late is None else {LATE: tables.late}
    outputs = {
        sink: SinkRows.of_stamped(batch) for sink, batch in {**tables.outputs, **late}.items()
    }
    return replace(lineage, events=lambda: inputs), outputs


def with_remarks(verdict: Verdict, ended: RunEnding) -> Verdict:
    """The verdict with what explains it: the system's own account, and faults that found it down."""
    said = [verdict.because.rstrip("."), *ended.remarks]
    if verdict.kept == "no" and ended.promise is not Guarantee.EXACTLY_ONCE:
        said.append(f"it promises no more than {ended.promise.value}")
    missed = (e.what.fault for e in ended.events if isinstance(e.what, FaultMissed))
    said.extend(f"'{fault}' found nobody: the system was down already" for fault in missed)
    return replace(verdict, because="; ".join(said))
