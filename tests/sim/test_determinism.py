"""One case, one journal: byte for byte, in every process, under any hash seed."""

import os
import subprocess
import sys

import pytest
from sim_runs import TROUBLE, happened, kept

from snapline.journal.codec import digest
from snapline.journal.fault_happenings import CoordinatorResumed, ProcessContinued
from snapline.journal.happenings import FrameFenced, MessageReplayed, SlotLost
from snapline.sim.case import Case
from snapline.sim.run import simulate

CASES = [
    Case("none", "counting", 5, records=20, faults=TROUBLE),
    Case("aligned", "q8", 5, records=20, faults=TROUBLE),
    Case("unaligned", "reachability", 6, records=20, faults=TROUBLE),
    Case("synchronous", "counting", 7, records=20, faults=TROUBLE),
    Case("uncoordinated", "q3", 5, records=20, faults=TROUBLE),
    Case("hmnr", "counting", 8, records=20),
    Case("bcs", "nhop", 9, records=20),
]

PROGRAM = """
import sys
from snapline.journal.codec import digest
from snapline.sim.case import Case
from snapline.sim.run import simulate
for text in sys.argv[1:]:
    print(digest(simulate(Case.from_json(text), journal=True).journal))
"""


@pytest.fixture(scope="module")
def digests():
    return [digest(kept(case, journal=True).journal) for case in CASES]


def test_the_same_case_gives_the_same_journal_again(digests):
    assert [digest(simulate(case, journal=True).journal) for case in CASES] == digests


def test_different_seeds_give_different_journals():
    journals = [kept(Case("aligned", "counting", s, records=5), journal=True) for s in range(5)]
    assert len({digest(outcome.journal) for outcome in journals}) == 5


@pytest.mark.parametrize("hash_seed", ["0", "1", "77"])
def test_the_journal_does_not_depend_on_the_hash_seed_of_the_process(digests, hash_seed):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *(case.to_json() for case in CASES)],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == digests


def test_these_journals_hold_zombies_and_resumes():
    """Or that they are equal would say little."""
    aligned, uncoordinated = (happened(kept(CASES[i], journal=True).journal) for i in (1, 4))
    assert all(
        aligned[what] for what in (SlotLost, ProcessContinued, FrameFenced, CoordinatorResumed)
    )
    assert uncoordinated[MessageReplayed]


def test_keeping_a_journal_changes_nothing():
    for case in CASES[:3]:
        assert simulate(case).stats == simulate(case, journal=True).stats
