"""Many runs: a sweep over all cores, the shrinking of a failing one, and whether a sweep proves anything.

A sweep in which the dangerous things never happened has proved nothing. So each protocol names what must
have been seen under it (`CheckpointProtocol.shows`), and in every cell of the table most runs must have
crashed after something was committed.
"""

import multiprocessing
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from statistics import median

from snapline.chaos.faults import describe
from snapline.chaos.shrink import shrink, smaller_faults
from snapline.errors import UsageError
from snapline.protocols import PROTOCOLS
from snapline.sim.case import Case, faults_of, pools_of
from snapline.sim.run import Outcome, simulate
from snapline.wording import plural
from snapline.workload import WORKLOADS

ALWAYS_SHOWN = (
    *("rollbacks", "fenced", "coordinator-resumed", "crash during recovery"),
    *("launch failed", "deposed"),
)
"""What must occur under every protocol that takes checkpoints."""

CRASHED_AFTER_COMMIT_MIN = 0.6
COMMITS_MEDIAN_MIN = 3


def sweep(cases: Sequence[Case], jobs: int, on_outcome: Callable[[Outcome], None]) -> list[Outcome]:
    """Run all cases on so many cores; outcomes come in the order of the cases."""
    outcomes: list[Outcome] = []
    if jobs <= 1 or len(cases) <= 1:
        for case in cases:
            outcomes.append(simulate(case))
            on_outcome(outcomes[-1])
        return outcomes
    with multiprocessing.Pool(jobs, _leave_signals_to_the_parent) as pool:
        for outcome in pool.imap(
            simulate, cases, chunksize=max(1, min(8, len(cases) // jobs // 8))
        ):
            outcomes.append(outcome)
            on_outcome(outcome)
    return outcomes


def _leave_signals_to_the_parent() -> None:
    """Ignore Ctrl-C, and end at once on SIGTERM, by which a pool ends its processes.

    A handler that was inherited runs only when Python code does, and not while a process waits for the lock
    of its queue: if the signal comes just before, that wait never ends, and neither does the pool's.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def shrink_case(case: Case, budget: int = 200) -> Case:
    """A smaller case that breaks the same invariant: fewer faults, fewer records, fewer slots."""
    outcome = simulate(case)
    assert outcome.violation is not None
    name = outcome.violation.name

    def fails(attempt: Case) -> bool:
        try:
            violation = simulate(attempt).violation
        except UsageError:  # it means nothing: a fault may be about a slot that is left out
            return False
        return violation is not None and violation.name == name

    pools = tuple(pools_of(case).items())
    explicit = replace(case, faults=describe(faults_of(case)), pools=pools)
    return shrink(explicit, _smaller, fails, budget) if fails(explicit) else case


def _smaller(case: Case) -> Iterator[Case]:
    for fewer in smaller_faults(faults_of(case)):
        yield replace(case, faults=describe(fewer))
    for records in (case.records // 4, case.records // 2, case.records - 1):
        if 1 <= records < case.records:
            yield replace(case, records=records)
    if case.slots > 1:
        yield replace(case, slots=case.slots - 1)


def vacuous(outcomes: Sequence[Outcome]) -> list[str]:
    """Why these runs prove nothing, as sentences; empty if they prove something."""
    ran = [outcome for outcome in outcomes if outcome.refused is None]
    return [*_missing_events(ran), *_tame_cells(ran)]


def _missing_events(outcomes: Sequence[Outcome]) -> Iterator[str]:
    seen: dict[str, Counter[str]] = {}
    workloads: dict[str, dict[str, None]] = {}
    for outcome in outcomes:
        name = outcome.case.protocol
        seen.setdefault(name, Counter()).update(outcome.stats)
        workloads.setdefault(name, {})[outcome.case.workload] = None
    for name, stats in seen.items():
        protocol = PROTOCOLS[name]
        able = [workload for workload, w in WORKLOADS.items() if protocol.cycles or not w.cyclic]
        if not protocol.saves or any(workload not in workloads[name] for workload in able):
            continue  # one workload alone need not show everything
        for event in ALWAYS_SHOWN + protocol.shows:
            if not stats[event]:
                yield f"under {name} this never happened: {event}"


def _tame_cells(outcomes: Sequence[Outcome]) -> Iterator[str]:
    cells: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        cells.setdefault((outcome.case.protocol, outcome.case.workload), []).append(outcome)
    for (protocol, workload), runs in cells.items():
        if not PROTOCOLS[protocol].saves or PROTOCOLS[protocol].heeds_policies:
            continue  # policies are drawn, too: in some runs nothing is saved
        share = sum(run.crashed_after_commit for run in runs) / len(runs)
        commits = median(run.stats.get("commits", 0) for run in runs)
        if share < CRASHED_AFTER_COMMIT_MIN:
            yield f"{protocol} on {workload}: only {share:.0%} of the runs crash after a commit"
        if commits < COMMITS_MEDIAN_MIN:
            yield f"{protocol} on {workload}: the median run commits only {plural(round(commits), 'line')}"
