"""A simulated run as pages show it: it has no directory, so all comes from its outcome."""

from dataclasses import asdict

from snapline.metrics.checkpointing.history import checkpoint_rows
from snapline.metrics.fault_spans import fault_spans
from snapline.metrics.figures import figures_of
from snapline.metrics.json_form import to_json
from snapline.report.run.reported import ReportedRun
from snapline.sim.run import Outcome


def simulated_run(outcome: Outcome) -> ReportedRun:
    """What a page shows of a simulated run, whose journal was kept."""
    case, figures = outcome.case, figures_of(outcome.journal)
    kept, because = _verdict(outcome)
    published = outcome.stats.get("published", 0)
    return ReportedRun(
        f"{case.workload}-{case.protocol}-seed-{case.seed}",
        simulated=True,
        command=case.command(),
        settings={**asdict(case), "faults": outcome.faults},
        kept=kept,
        because=because,
        guarantees={case.guarantee: kept},
        problems=[{"kind": "wrong", "record": "", "because": each} for each in outcome.problems],
        strikes=[asdict(strike) for strike in outcome.strikes],
        metrics=to_json(figures),
        figures=figures,
        rows={"published": published} if published else {},
        checkpoints=tuple(checkpoint_rows(outcome.journal)),
        faults=tuple(fault_spans(outcome.journal)),
        entries=outcome.journal,
        journal=outcome.journal,
        topology=outcome.topology,
    )


def _verdict(outcome: Outcome) -> tuple[str, str]:
    if outcome.violation is not None:
        return "no", f"{outcome.violation.name}: {outcome.violation.story}"
    if outcome.stopped is not None:
        return "unknown", f"stopped, rightly: {outcome.stopped}"
    if outcome.vacuous is not None:
        return "unknown", outcome.vacuous
    if outcome.problems:
        return "yes", f"nothing was promised, and the output is wrong: {outcome.problems[0]}"
    expected = f"the published output is what the oracle expects ({outcome.case.guarantee})"
    return "yes", expected
