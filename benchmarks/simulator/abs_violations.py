"""How often ABS's algorithm for cycles fails as it was published, and with its corrections.

    python -m benchmarks.simulator.abs_violations --seeds 100

Three forms of the algorithm run the two cyclic workloads in the simulator: as the paper has it, with the
comparison of marked inputs mended, and as Snapline's `aligned-cyclic`, which also blocks a back edge whose
marker comes first. Every seed draws a world, settings and faults of its own, the same for all three, and
every run is watched by all invariants. A round that waits for ever is given up at its deadline: it harms
nobody, but there is no checkpoint. A run that breaks an invariant ends there.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from os import cpu_count

from benchmarks.common.pages import Session, call, parser_of, table
from benchmarks.simulator.abs_published import COMPARED, PUBLISHED
from snapline.protocols import PROTOCOLS
from snapline.sim.case import Case
from snapline.sim.run import simulate

CORRECTED = PROTOCOLS["aligned-cyclic"]
FORMS = {
    "as published": PUBLISHED,
    "comparison mended": COMPARED,
    "aligned-cyclic": CORRECTED,
}
WORKLOADS = ("reachability", "nhop")
SLOTS = (1, 3)


@dataclass(frozen=True)
class Ended:
    """What became of one run."""

    broke: str | None  # the invariant that it broke
    lines: int  # rounds that were complete, and committed
    given_up: int  # rounds that were not complete at their deadline, or when something failed


def run(form: str, workload: str, slots: int, faults: str | None, seed: int) -> Ended:
    """One run of a workload under one form of the algorithm."""
    case = Case(CORRECTED.name, workload, seed, slots=slots, faults=faults)
    found = simulate(case, protocol=FORMS[form])
    broke = None if found.violation is None else found.violation.name
    return Ended(broke, found.stats.get("commits", 0), found.stats.get("round aborted", 0))


def row(found: Sequence[Ended], *names: str) -> list[str]:
    """One line of the table: how many rounds there were, how many runs broke, and what broke in them."""
    counted = Counter(run.broke for run in found if run.broke is not None)
    told = ", ".join(f"`{name}` {count:,}" for name, count in counted.most_common())
    rounds = [
        f"{sum(counts):,}" for counts in zip(*((r.lines, r.given_up) for r in found), strict=True)
    ]
    return [*names, f"{len(found):,}", *rounds, f"{counted.total() / len(found):.1%}", told]


def asked() -> argparse.Namespace:
    parser = parser_of(__doc__, "abs_violations.md")
    parser.add_argument("--seeds", type=int, default=100, help="of each line of the table")
    parser.add_argument("--jobs", type=int, default=cpu_count(), help="processes (all cores)")
    return parser.parse_args()


def main() -> None:
    options, session = asked(), Session()
    rows = []
    with ProcessPoolExecutor(options.jobs) as workers:
        for workload in WORKLOADS:
            for slots in SLOTS:
                for name, faults in (("none", ""), ("drawn", None)):
                    for form in FORMS:
                        one = partial(run, form, workload, slots, faults)
                        found = list(workers.map(one, range(options.seeds), chunksize=8))
                        rows.append(row(found, workload, str(slots), name, form))
                        session.say("  ".join(rows[-1]))
    how = [
        f"Commit {session.commit()}; seeds 0 to {options.seeds - 1}, the same for all forms. With one slot",
        "there are no parallel back edges. *Lines*: rounds that were complete; *given up*: those that were",
        "not; *broken*: runs that broke an invariant, and which one. Nothing here depends on a clock or",
        "on other load.",
    ]
    head = (
        "workload",
        "slots",
        "faults",
        "algorithm",
        "runs",
        "lines",
        "given up",
        "broken",
        "how",
    )
    title = "ABS's algorithm for cycles, as published"
    session.write(options.to, title, how, [table(head, rows)])


if __name__ == "__main__":
    call(main)
