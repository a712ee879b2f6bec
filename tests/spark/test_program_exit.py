"""A program that exits while its queries run, or are only starting: they end first, in good order."""

import subprocess
import sys

import pytest
from run_helpers import happenings

from snapline.ids import task_id
from snapline.journal.happenings import Happening, JobInterrupted, JobSuspended
from snapline.rundir.directory import RunDirectory
from snapline.runs.finished import read_output

pytestmark = pytest.mark.spark

#: Its arguments are the folder of its runs, and for how many seconds it waits for a slot, and at its exit.
PROGRAM = """
import sys, time
import snapline as sl
from snapline import api
from snapline.runs import query
from snapline.runtime.driver.driver import Timeouts
from snapline.spark.slot_jobs import own_session

def numbers():
    flow = sl.Dataflow("numbers")
    flow.source(sl.generated(lambda n: {"n": n}, rate=500)).sink("out")
    return flow

how = {"runs": sys.argv[1], "slots": 1, "interval": "300ms"}
query.EXIT_S = patience_s = float(sys.argv[2])
slow = dict.fromkeys(("silence_s", "lease_s", "restore_s", "register_s", "stop_s"), patience_s)
api.timeouts = lambda *_: Timeouts(**slow)
spark = own_session(2)
runs = sl.start(numbers(), spark, **how)
while not (runs.last_progress or {"lines": 0})["lines"]:
    assert runs.is_active, runs.exception()
    time.sleep(0.05)
print(runs.name)
starts = sl.start(numbers(), spark, **how)
"""

PATIENCE_S = 600


def test_a_program_that_exits_ends_its_queries_in_good_order(tmp_path):
    """One that runs ends with a last line. One that only starts ends as soon as it can be told."""
    program = [sys.executable, "-c", PROGRAM, str(tmp_path), str(2 * PATIENCE_S)]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE_S)
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    ran = RunDirectory(tmp_path / ended.stdout.strip())
    [started] = (RunDirectory(path) for path in tmp_path.iterdir() if path != ran.path)
    assert [type(what) for what in ends_of(ran)] == [JobSuspended]
    assert len(ends_of(started)) == 1
    numbers = sorted(read_output(ran, "aligned", [task_id("out", 0)])["n"].tolist())
    assert numbers == list(range(len(numbers)))


def ends_of(run: RunDirectory) -> list[Happening]:
    """How its drivers have ended."""
    told = [entry.what for entry in happenings(run.path / "journal", "driver-*")]
    return [what for what in told if isinstance(what, JobSuspended | JobInterrupted)]
