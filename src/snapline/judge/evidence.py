"""What a judge has of a run: the question, how the run ended, what came out, and what should have.

Our own runs and those of other systems leave different files. `RunEvidence` is the same for both, so that
both are judged by the same rules (`judge.run_directory`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from snapline.core.guarantee import Guarantee
from snapline.ids import Millis
from snapline.journal.entry import Happened
from snapline.judge.history import History
from snapline.judge.prefix.cut import LineCut
from snapline.judge.reader import Deleted, SinkRows
from snapline.judge.verdict import Verdict
from snapline.loss.answers import deviation_of, right_answer
from snapline.metrics.deviation import DeviationFigures
from snapline.protocols import PROTOCOLS
from snapline.rundir.program import Program
from snapline.rundir.spec import OWN, Spec
from snapline.storage.api import View
from snapline.workload.common.base import Lineage


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
    #: of a run that is not over: its last decision. What it had put out by that line is judged
    line: int | None = None


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """What came out of a run, and what knows whether that is right."""

    promise: Guarantee  # the guarantee that decides
    view: View
    history: History
    program: Program | None = None  # None: nobody can build it again
    outputs: Mapping[str, SinkRows] = field(default_factory=dict)
    cut: LineCut | None = None  # of a run that is not over: how far it had come
    failed: Verdict | None = None  # the verdict if there is nothing that could be compared
    deleted: Deleted | None = None  # what was public, and was deleted because it was old

    @property
    def rows(self) -> dict[str, int]:
        """How many rows came out of each sink."""
        return {sink: len(output.rows) for sink, output in self.outputs.items()}

    @property
    def lineage(self) -> Lineage | None:
        """What is known of the inputs that outputs name; None if they name none."""
        return None if self.program is None else self.program.lineage


def first_written(outputs: Iterable[SinkRows]) -> Millis | None:
    """When the first row was written, in milliseconds of the run; None if there is none."""
    return min((int(o.stamps["written"].min()) for o in outputs if len(o.stamps)), default=None)


def deviation_in(evidence: RunEvidence, spec: Spec, problem: str | None) -> DeviationFigures | None:
    """How far the answer of a run is off, from its first fault on.

    None if nothing could make it wrong, if it is not whole, or if nobody knows what is right.
    """
    known = None if evidence.program is None else evidence.program.answer
    whole = evidence.failed is None and evidence.cut is None and evidence.deleted is None
    if known is None or not whole or problem is not None or spec.system != OWN:
        return None
    if not spec.faults and not PROTOCOLS[spec.protocol].publishes_at_once:
        return None
    assert evidence.program is not None
    right = right_answer(known.answer, evidence.program.flow, spec.slots, known.right)
    found = evidence.outputs[known.answer.sink]
    struck = [strike.at_ms for strike in evidence.history.strikes if strike.at_ms is not None]
    written_ms = found.written[1] if len(found.stamps) else np.zeros(0, np.int64)
    return deviation_of(known.answer, right, found.rows, written_ms, min(struck, default=0))
