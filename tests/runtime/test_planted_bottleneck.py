"""A search for a capacity that is known beforehand, because a slot was made slow on purpose."""

import pytest

from snapline.experiments.rates.capacity import SearchForm
from snapline.experiments.rates.probing import Prober, find_capacity
from snapline.rundir.spec import spec_from
from snapline.runtime.launch.processes import ProcessSlots

WAIT_S = 20e-6
BATCH = 100
FORM = SearchForm(1.10, 3, 15)

#: A slot whose source reads a batch only once in a while. It makes up for half a second, if the machine
#: kept it from reading for so long: that others use the machine makes no difference. As it sleeps
#: within its loop, it looks at its sockets after every input.
SLOW = """
import pickle, sys, time
from snapline.engine.slot.task import Task
from snapline.runtime.slot import process

read, free_s = Task.read_source, 0.0

def slow(task, *what):
    global free_s
    now_s = time.monotonic()
    begin_s = max(free_s, now_s - 0.5)
    free_s = begin_s + {wait_s}
    time.sleep(max(0.0, begin_s - now_s))
    return read(task, *what)

Task.read_source = slow
process.STEPS_PER_POLL = 1
process.SlotProcess(*pickle.load(sys.stdin.buffer), sys.argv[1]).run()
"""


@pytest.mark.slow
@pytest.mark.parametrize("waits", [2_500, 5_000])
def test_the_search_finds_the_capacity_that_a_wait_for_each_batch_leaves(tmp_path, waits):
    wait_s = waits * WAIT_S
    implied = BATCH / wait_s  # one slot, one source, one partition
    given = {
        "flow": "q12", "protocol": "aligned", "slots": 1, "size": "small", "interval": "1s",
        "options": {"batch": BATCH},
    }  # fmt: skip

    def launch():
        return ProcessSlots(program=SLOW.format(wait_s=wait_s))

    prober = Prober(spec_from(given, str), None, tmp_path, FORM.window_s, launch=launch)
    found = find_capacity(prober, FORM)
    assert found.low <= 1.01 * implied  # it is enough to read 99 % of what is due
    assert found.high >= 0.99 * implied
    assert found.high <= 1.1 * found.low
    assert not [*tmp_path.iterdir()]  # every run was removed
