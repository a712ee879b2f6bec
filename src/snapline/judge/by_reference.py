"""Judges the output of a run by the same dataflow run without failures, for each guarantee.

First every operator is captured and restored while it works (`engine/reference`): one that forgets
something is named, even if it did no harm in this run. Then the output is compared (`workload/oracles`).
"""

from collections.abc import Callable, Mapping
from functools import cache

from snapline.batch import Batch
from snapline.core.guarantee import Guarantee
from snapline.dataflow.deploy import Deployment, deploy
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.partition import ByKey
from snapline.engine.reference.mishaps import Breaker, Mishap, mishaps_of
from snapline.engine.reference.reference import UNBOUNDED, Watermarked, reference_output
from snapline.engine.reference.rehearsal import Complaint, rehearse
from snapline.errors import SnaplineError
from snapline.judge.prefix.cut import of_chains
from snapline.judge.verdict import Answers, Verdict, first_said, rows_as
from snapline.storage.api import Ingress
from snapline.storage.streams.chain import pauses, read_manifests, records_late
from snapline.storage.streams.ingress import StreamIngress
from snapline.storage.streams.manifests import Manifests
from snapline.validate.judged import PROMISES
from snapline.workload.common.base import Problem
from snapline.workload.oracles.reference import Break, Comparer, Comparison

_BROKEN_ORDER = 1  # the order of input in which the dataflow is broken on purpose


def judge_by_reference(
    flow: Dataflow,
    slots: int,
    found: Mapping[str, Batch],
    promised: Guarantee,
    *,
    saves: bool,
    watermarks: Watermarked = UNBOUNDED,
) -> Verdict:
    """Judge output by runs of the same dataflow without failures.

    `saves`: whether the run ever restored anything, so that operators have to survive that.
    `watermarks`: those that the tasks of each operator had when a run stopped that is not over.
    """
    at = cache(_compared(flow, slots, found, saves, watermarks))
    clean = at(Guarantee.EXACTLY_ONCE).kept == "yes"
    answers: Answers = {level.value: "yes" if clean else at(level).kept for level in PROMISES}
    nothing = promised is Guarantee.NOTHING
    decides = at(Guarantee.EXACTLY_ONCE if nothing or clean else promised)
    if decides.undecided is not None:
        return Verdict("unknown", decides.undecided, (), answers)
    if problems := decides.problems:
        return Verdict("no", first_said(problems, promised), problems, answers)
    rows = sum(len(batch) for batch in found.values())
    right = rows_as(rows, "comes out without failures")
    if decides.views:
        right += f", in all that does not depend on the order of input: {'; '.join(decides.views)}"
    return Verdict("yes", right, (), answers)


def _compared(
    flow: Dataflow,
    slots: int,
    found: Mapping[str, Batch],
    saves: bool,
    watermarks: Watermarked,
) -> Callable[[Guarantee], Comparison]:
    """Compare the output with runs of the flow without failures, at one guarantee level."""
    try:
        plain, lean = deploy(flow, slots), deploy(flow, slots, lean=True)
        return _held_against(plain, lean, found, saves, watermarks)
    except SnaplineError as error:
        undecided = Comparison("unknown", undecided=f"there is no reference: {error}")
        return lambda level: undecided


def _held_against(
    plain: Deployment,
    lean: Deployment,
    found: Mapping[str, Batch],
    saves: bool,
    watermarks: Watermarked,
) -> Callable[[Guarantee], Comparison]:
    complaint = None
    if saves:
        # Alone, an operator shows its own mistakes; in the chains of a real run, those that chains add.
        first, complaint = rehearse(plain, 0, watermarks)
        complaint = complaint or rehearse(lean, 0, of_chains(lean, watermarks))[1]
    else:
        first = reference_output(plain, 0, watermarked=watermarks)
    if complaint is not None:
        said = _said(complaint)
        return lambda level: said
    breaker = cache(lambda: Breaker(plain, _BROKEN_ORDER, watermarks))

    @cache
    def reference(order: int) -> Mapping[str, Batch]:
        if order == _BROKEN_ORDER:
            return breaker().plain
        return first if order == 0 else reference_output(plain, order, watermarked=watermarks)

    keys = {
        route.routing.columns: None
        for plan in plain.plans.values()
        for route in plan.routes
        if isinstance(route.routing, ByKey) and route.routing.columns
    }
    breaks = [_break(breaker, mishap) for mishap in mishaps_of(plain)]
    return Comparer(found, reference, tuple(keys), breaks).at


def _said(complaint: Complaint) -> Comparison:
    if complaint.certain:
        return Comparison("no", (Problem("wrong", complaint.operator, complaint.because),))
    return Comparison(
        "unknown", undecided=f"{complaint.operator} cannot be judged: {complaint.because}"
    )


def _break(breaker: Callable[[], Breaker], mishap: Mishap) -> Break:
    def outputs(attempt: int) -> tuple[Mapping[str, Batch], Mapping[str, Batch] | None]:
        return breaker().plain, breaker().broken(mishap, attempt)

    match mishap.kind:
        case "forgets":
            return Break(f"'{mishap.operator}' lost its state", "state", outputs)
        case "loses":
            return Break(f"records of '{mishap.operator}' were lost", "lack", outputs)
        case "repeats":
            return Break(f"records of '{mishap.operator}' came twice", "excess", outputs)


def input_deleted(flow: Dataflow) -> str | None:
    """Why nobody can compute what a run should have put out; None if all of its input is there."""
    for name, ingress in _sources(flow).items():
        floor = Manifests(ingress.place).floor() if isinstance(ingress, StreamIngress) else 1
        if floor > 1:
            return (
                f"the input of the stream '{name}' before micro-batch {floor - 1} was deleted by retain: "
                "what should have come of it cannot be computed again"
            )
    return None


def _sources(flow: Dataflow) -> dict[str, Ingress]:
    nodes = flow.graph.nodes.values()
    return {node.name: node.bound for node in nodes if node.bound is not None}


def stream_doubt(flow: Dataflow) -> str | None:
    """Why output that differs from that of a run without failures may be right; None if it cannot be.

    Which records of a stream are late may depend on when they came, and no other run has that from it.
    """
    sources = _sources(flow)
    for name, ingress in sources.items():
        if not isinstance(ingress, StreamIngress) or ingress.about.time is None:
            continue
        manifests = read_manifests(ingress.place)
        if records_late(ingress.about, manifests):
            return (
                f"rows of the stream '{name}' came further behind the others than its disorder allows: "
                "which of them were late depends on the moment at which they were read"
            )
        if len(sources) > 1 and pauses(ingress.about, manifests):
            return (
                f"the stream '{name}' may have been idle: then rows that came after that may have been "
                "late, and in a run without pauses they are not"
            )
    return None
