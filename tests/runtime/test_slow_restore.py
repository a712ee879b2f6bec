"""A slot that loads much state is busy, not dead, and its driver is not, either."""

from dataclasses import replace

from process_slots import PATIENT, run_processes

from snapline.journal.happenings import JobRunning, SlotLost
from snapline.runtime.launch.processes import PROGRAM

SLOW = """
import time
from snapline.engine.slot.task import Task
restore = Task.restore
def slow(self, captures, meta):
    if self.plan.sink is not None:
        time.sleep(3)
    restore(self, captures, meta)
Task.restore = slow
"""


def test_a_slot_may_be_silent_for_longer_while_it_loads_its_state(tmp_path):
    timeouts = replace(PATIENT, lease_s=2.5)

    def be_impatient(driver, entry):
        """While a recovery is under way, and no longer: a busy machine may make anybody seem silent."""
        if isinstance(entry.what, SlotLost):
            timeouts.silence_s = 2.0
        elif isinstance(entry.what, JobRunning):
            timeouts.silence_s = PATIENT.silence_s

    outcome = run_processes(
        tmp_path,
        "aligned",
        "kill slot=1 at=900ms",
        duration_ms=2_000,
        timeouts=timeouts,
        program=SLOW + PROGRAM,
        on_event=be_impatient,
    )
    assert (outcome.problem, outcome.problems) == (None, [])
    assert outcome.lost == [1], "nobody was given up for being slow"
