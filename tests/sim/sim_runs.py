"""What the tests of the simulator share: runs that must keep their promise, and how to repeat one."""

import os
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

from snapline.core.protocol import CheckpointProtocol
from snapline.journal.entry import Entry, Handled, Happened
from snapline.protocols import PROTOCOLS
from snapline.sim.case import Case
from snapline.sim.run import Outcome, simulate
from snapline.workload import WORKLOADS


def _fresh_seed() -> int:
    if os.environ.get("CI"):
        return 1
    # Processes that run tests side by side must find the same tests: they know the id of their session.
    session = os.environ.get("PYTEST_XDIST_TESTRUNUID") or os.urandom(3).hex()
    return int(session[:6], 16)


FRESH = _fresh_seed()
"""A seed that nobody has tried, another one in every session but those of CI. It is part of the names of
its tests.
"""

TROUBLE = (
    "kill slot=1 at=700ms; pause slot=2 at=1s for=600ms; "
    "kill coordinator at=1700ms for=150ms; pause coordinator at=2200ms for=900ms"
)
"""A crash, a slot that comes back as a zombie, a resume, and a coordinator that comes back as one."""


def kept(
    case: Case, *, journal: bool = False, protocol: CheckpointProtocol | None = None
) -> Outcome:
    """Run a case that must keep its promise; if it does not, the message repeats it."""
    outcome = simulate(case, journal=journal, protocol=protocol)
    broken = outcome.violation
    assert broken is None, f"{broken.name}: {broken.story}\nrepeat with: {case.command()}"
    return replace(outcome, stats=Counter(outcome.stats))  # what never happened counts 0


def can_run(protocol: str, workload: str) -> bool:
    return PROTOCOLS[protocol].cycles or not WORKLOADS[workload].cyclic


def happened(entries: Iterable[Entry]) -> Counter[type]:
    """How often what happened, by the journal; and what protocol objects were told."""
    seen: Counter[type] = Counter()
    for entry in entries:
        if isinstance(entry, Happened):
            seen[type(entry.what)] += 1
        elif isinstance(entry, Handled):
            seen[type(entry.event)] += 1
    return seen


def first_that_shows(
    cases: Iterable[Case], shows: Callable[[Outcome], bool], *, journal: bool = True
) -> Outcome:
    """The first of these cases in which something is seen. All that are run must keep their promise."""
    tried = 0
    for case in cases:
        outcome = kept(case, journal=journal)
        tried += 1
        if shows(outcome):
            return outcome
    raise AssertionError(f"in {tried} runs it never happened; the last was {case.command()}")
