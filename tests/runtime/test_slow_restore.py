"""A slot that loads much state is busy, not dead, and its driver is not, either."""

from process_slots import run_processes

from snapline.runtime.driver import Timeouts
from snapline.runtime.process_slots import PROGRAM

SLOW = """
import time
from snapline.engine.task import Task
restore = Task.restore
def slow(self, captures, meta):
    if self.plan.sink is not None:
        time.sleep(2)
    restore(self, captures, meta)
Task.restore = slow
"""


def test_a_slot_may_be_silent_for_longer_while_it_loads_its_state(tmp_path):
    outcome = run_processes(
        tmp_path,
        "aligned",
        "kill slot=1 at=1500ms",
        timeouts=Timeouts(silence_s=1.0, lease_s=1.5),
        program=SLOW + PROGRAM,
    )
    assert (outcome.problem, outcome.problems) == (None, [])
    assert outcome.lost == [1], "nobody was given up for being slow"
