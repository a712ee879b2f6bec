"""A slot whose place is taken away leaves with a line, and its successor goes on: real processes."""

from dataclasses import replace

import pytest
from process_slots import PATIENT, committed, processes_of, run_processes, strike

from snapline.journal.entry import Happened
from snapline.journal.happenings import JobRunning, LineDecided, SlotLeaving, SlotLeft, SlotLost
from snapline.runtime.driver.driver import Driver
from snapline.runtime.driver.restart import RestartPolicy

STRICT = replace(PATIENT, restarts=RestartPolicy(failures=1))
"""The first process that fails is one too many."""


class Decommissioned:
    """Takes the places of slot 1 and of all spares away, once, when there is a line and a spare."""

    def __init__(self, faults: str = "", spares: int = 0) -> None:
        self.faults = faults
        self.spares = spares
        self.gone: list[str] = []  #: the processes that had to leave
        self.successors: list[int] = []  #: how many spares there were, each time a slot left

    def __call__(self, driver: Driver, entry: Happened) -> None:
        idle = driver.roster.idle()
        if not self.gone and committed(driver, entry) and len(idle) == self.spares:
            members = [driver.killer.member(1), *idle]
            self.gone = [member.tag for member in members]
            driver.loop.post(lambda: driver.receiver.leaving(self.gone))
        elif isinstance(entry.what, SlotLeaving) and self.faults:
            strike(driver, self.faults)
        elif isinstance(entry.what, SlotLeft):
            self.successors.append(len(idle))

    def over(self, driver: Driver, entry: Happened) -> bool:
        """Whether all of them are gone, and the slots run again."""
        ended = [processes_of(driver)[tag].poll() is not None for tag in self.gone]
        return bool(ended) and all(ended) and driver.engine.epoch > 1 and driver.roster.running


def test_a_slot_leaves_with_a_line_its_successor_waits_and_a_spare_leaves_at_once(tmp_path):
    places = Decommissioned(spares=1)
    outcome = run_processes(
        *(tmp_path, "aligned"), spares=1, timeouts=STRICT, on_event=places, until=places.over
    )
    assert (outcome.problem, outcome.problems, outcome.lost) == (None, [], [])
    kinds = LineDecided | SlotLeaving | SlotLeft | JobRunning
    told = [entry for entry in outcome.happened if isinstance(entry.what, kinds)]
    [at] = [n for n, entry in enumerate(told) if isinstance(entry.what, SlotLeft)]
    before, left, begun, running = told[at - 1 : at + 3]
    assert committed(outcome.driver, before), "a line just before it leaves"
    assert left.what == SlotLeft(1, 1)
    assert (begun.what.line, begun.what.epoch) == (before.what.line, left.epoch + 1)
    assert (running.what, running.epoch) == (JobRunning(), left.epoch + 1)
    assert [entry.what for entry in outcome.what(SlotLeaving)] == [SlotLeaving(1, 1)], "told once"
    assert all(places.successors), "it waited for its successor"
    codes = [processes_of(outcome.driver)[tag].returncode for tag in places.gone]
    assert codes == [0, 0], "they ended by themselves"


@pytest.mark.slow
def test_a_slot_that_dies_before_it_can_leave_is_lost_like_any_other(tmp_path):
    places = Decommissioned("kill slot=1 at=0ms")
    outcome = run_processes(
        *(tmp_path, "uncoordinated"), timeouts=STRICT, on_event=places, until=places.over
    )
    assert (outcome.problem, outcome.problems) == (None, [])
    kinds = SlotLeaving | SlotLost | SlotLeft
    told = [type(entry.what) for entry in outcome.happened if isinstance(entry.what, kinds)]
    assert told == [SlotLeaving, SlotLost]
    assert not outcome.driver.roster.leaving
