"""A journal holds all that protocol objects were told: fresh ones, told the same, answer the same."""

import random
from dataclasses import replace

import pytest
from sim_runs import FRESH, TROUBLE, can_run, happened, kept

from journal_feeder import Feeder
from snapline.core.events import Started
from snapline.journal.codec import lines, read
from snapline.journal.entry import Handled
from snapline.journal.fault_happenings import CoordinatorResumed
from snapline.protocols import PROTOCOLS
from snapline.sim.case import Case
from snapline.sim.run import build_job
from snapline.sim.world.costs import Costs

CELLS = [(p, w) for p in PROTOCOLS for w in ("counting", "nhop") if can_run(p, w)]


def feeder(case):
    """The job of a case, as the simulator builds it."""
    rng = random.Random(f"{case.seed}:world")
    Costs.draw(rng)
    return Feeder(build_job(case, PROTOCOLS[case.protocol], rng))


def recorded(case):
    outcome = kept(case, journal=True)
    assert happened(outcome.journal)[CoordinatorResumed]
    return outcome.journal


@pytest.mark.parametrize(("protocol", "workload"), CELLS)
def test_fresh_objects_answer_as_the_journal_says(protocol, workload):
    case = Case(protocol, workload, 4, records=20, faults=TROUBLE)
    fed = feeder(case)
    assert list(fed.feed(recorded(case))) == []
    assert fed.checked > 200


@pytest.mark.parametrize(("protocol", "workload"), CELLS)
def test_they_do_so_too_when_the_journal_went_through_its_text_form(protocol, workload):
    case = Case(protocol, workload, 5, records=20, faults=TROUBLE)
    journal = recorded(case)
    fed = feeder(case)
    assert list(fed.feed(list(read(lines(journal), PROTOCOLS[protocol])))) == []
    assert fed.checked > 200


@pytest.mark.parametrize("protocol", ["unaligned", "hmnr"])
def test_they_do_so_under_faults_that_nobody_chose(protocol):
    case = Case(protocol, "reachability", FRESH, records=16)
    differences = list(feeder(case).feed(kept(case, journal=True).journal))
    assert differences == [], case.command()


def test_a_journal_that_was_tampered_with_is_noticed():
    case = Case("uncoordinated", "counting", 4, records=20, faults=TROUBLE)
    journal = list(recorded(case))
    at, entry = next(
        (at, entry)
        for at, entry in enumerate(journal)
        if isinstance(entry, Handled) and entry.event == Started()
    )
    [timer] = entry.effects
    journal[at] = replace(entry, effects=(replace(timer, delay_ms=timer.delay_ms + 1),))
    [difference] = feeder(case).feed(journal)
    assert difference.entry == journal[at]
    assert difference.answered == entry.effects
