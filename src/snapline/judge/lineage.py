"""The judge of a run whose outputs name the inputs behind them: verdict, witnesses, PGVal's figures.

What a run has put out is read from its files, with the position of every row and when it was written, and
held against the events that went in. Each thing that is wrong has a witness; its sentence says which fault
was active in the time between the arrival of the event and the output.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from snapline.batch import Batch, Varlen
from snapline.core.guarantee import Guarantee
from snapline.ids import Millis
from snapline.judge.report_files import held_to, report_of
from snapline.judge.verdict import Verdict
from snapline.metrics.reliability import Events, LineageFigures, Results, figures, phases
from snapline.validate.causes import BREAKS, OF_A_LATE_EVENT, Cause
from snapline.validate.check import judge_each
from snapline.validate.columns import Bools, Ints
from snapline.validate.judged import Judged, Witness
from snapline.validate.sentences import (
    TimedFault,
    WitnessEvent,
    active_fault,
    event_of,
    life_of,
    sentence,
)
from snapline.workload.common.base import Lineage, Problem
from snapline.workload.lineage.oracle import KINDS, LATE, SINK

LISTS = ("ids", "get_ids", "post_ids")


@dataclass(frozen=True, slots=True)
class LineageReport:
    """The judgement on a run's output, committed or uncommitted, with a sentence for each cause."""

    judged: Judged
    sentences: Mapping[Cause, str]  # one for each cause that was found
    figures: LineageFigures | None  # None: they need the whole run, which is not over

    def verdict(self, promised: Guarantee) -> Verdict:
        """The verdict on the promised guarantee, with the answers for the others."""
        told = report_of("", self.judged, self.sentences, promised)
        problems = tuple(
            Problem(KINDS[cause], cause.value, text)
            for cause, text in self.sentences.items()
            if held_to(promised) in BREAKS[cause]
        )
        answers = {level.value: answer for level, answer in told.guarantees.items()}
        return Verdict(told.kept, told.because, problems, answers)


def judge_lineage(
    lineage: Lineage,
    outputs: Batch,
    late: Batch,
    faults: Sequence[TimedFault],
    end_ms: Millis,
    position: Callable[[int], str] = str,
    until_ms: Millis | None = None,
) -> LineageReport:
    """Judge outputs that have `position` and `written`; `faults` is what happened until `end_ms`.

    `position` turns the position of a row into text. With `until_ms` only windows that end then or before
    are judged, and there are no figures.
    """
    events = lineage.events()
    judged, reliable, correct = judge_each(
        events,
        outputs,
        late,
        lineage.window_ms,
        lateness_ms=lineage.lateness_ms,
        until_ms=until_ms,
    )
    sentences = {
        cause: sentence_of(
            witness := judged.witnesses[cause],
            lineage,
            event_of(events, witness.id),
            _written(witness, {SINK: outputs, LATE: late}),
            faults,
            position,
        )
        for cause in Cause
        if cause in judged.witnesses
    }
    if until_ms is not None:
        return LineageReport(judged, sentences, None)
    spans = [(fault.start_ms, max(fault.over_ms, fault.start_ms + 1)) for fault in faults]
    found = figures(
        Events(events["time"], events["arrival"], reliable),
        _results(outputs, late, correct),
        lineage.window_ms,
        phases(spans, end_ms),
    )
    return LineageReport(judged, sentences, found)


def too_early(
    outputs: Batch, late: Batch, lineage: Lineage, reached_ms: Millis
) -> Iterator[Problem]:
    """The first row of each sink whose window no watermark up to this one can have closed."""
    open_from = (
        reached_ms - lineage.lateness_ms - lineage.window_ms
    )  # windows that start behind this
    for sink, table in ((SINK, outputs), (LATE, late)):
        if not len(table):
            continue
        times = table["window" if sink == SINK else "time"]
        windows = times - times % lineage.window_ms
        for row in np.flatnonzero(windows > open_from)[:1].tolist():
            record = f"resource {table['resource'][row]} in window {windows[row]}"
            said = f"it is in {sink}, although no watermark was beyond {reached_ms} ms"
            yield Problem("wrong", record, said)


def sentence_of(
    witness: Witness,
    lineage: Lineage,
    event: WitnessEvent | None,
    written: Iterable[Millis],
    faults: Sequence[TimedFault],
    position: Callable[[int], str],
) -> str:
    """The sentence of a witness, with the fault behind it; `written` has the times of its `named_rows`."""
    life = life_of(
        witness,
        lineage.window_ms,
        lateness_ms=lineage.lateness_ms,
        event=event,
        written_ms=max(written, default=None),
    )
    fault = active_fault(faults, *life)
    return sentence(
        witness,
        lineage.window_ms,
        event=event,
        label=lineage.label,
        position=position,
        fault=fault,
    )


def named_rows(witness: Witness) -> Iterator[tuple[str, int]]:
    """The rows that a witness names, by sink and position: together they show what is wrong."""
    named_late = witness.cause in OF_A_LATE_EVENT or witness.window is None
    if witness.position is not None:
        yield LATE if named_late else SINK, witness.position
    others = {Cause.DUPLICATE: SINK, Cause.SPLIT: SINK}
    others |= {Cause.LATE_AND_WINDOWED: SINK, Cause.LATE_TWICE: LATE}
    if witness.cause in others and witness.other is not None:
        yield others[witness.cause], witness.other


def _written(witness: Witness, tables: Mapping[str, Batch]) -> Iterator[Millis]:
    for sink, position in named_rows(witness):
        at = np.flatnonzero(tables[sink]["position"] == position)
        yield int(tables[sink]["written"][at[0]])


def _results(outputs: Batch, late: Batch, correct: Bools) -> Results:
    """The outputs as metrics need them: each event that any output names, with the time of that output.

    `correct` says of every output whether its values are right.
    """
    ids: list[Ints] = []
    times: list[Ints] = []
    for name in LISTS if len(outputs) else ():
        if name in outputs.columns:
            claimed: Varlen = outputs[name].compact()
            ids.append(claimed.values)
            times.append(np.repeat(outputs["written"], np.diff(claimed.offsets)))
    if len(late):
        ids.append(late["id"])
        times.append(late["written"])
    nothing = np.zeros(0, np.int64)
    return Results(
        outputs["window"] if len(outputs) else nothing,
        outputs["written"] if len(outputs) else nothing,
        np.concatenate([nothing, *ids]),
        np.concatenate([nothing, *times]),
        correct,
    )
