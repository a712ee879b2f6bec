"""Parquet files of a sink, through kills of slots, and of drivers at every step of publishing."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from parquet_run import MOMENTS, PARAMS, the_job
from process_slots import a_directory, committed, public, run_processes, strike
from pyarrow import parquet

from held_input import Hold
from snapline.storage.parquet.arrow import from_arrow
from snapline.workload import WORKLOADS

SCRIPT = Path(__file__).with_name("parquet_run.py")
SLOW = pytest.mark.slow


def seen(folder):
    """What a plain reader of Parquet finds, which leaves out hidden names."""
    files = [path for path in folder.iterdir() if path.name[0] not in "._"]
    return sorted(row for path in files for row in from_arrow(parquet.read_table(path)).rows())


@pytest.mark.parametrize(
    "protocol", ["unaligned", *(pytest.param(p, marks=SLOW) for p in ("aligned", "hmnr"))]
)
def test_a_killed_slot_leaves_every_row_once(tmp_path, protocol):
    struck = []

    def act(driver, entry):
        if committed(driver, entry) and len(struck) < 2:
            struck.append(strike(driver, "kill slot=1 at=0ms"))

    outcome = run_processes(
        tmp_path,
        protocol,
        on_event=act,
        until=lambda *_: len(struck) == 2,
        folder=tmp_path / "out",
    )
    assert (outcome.problem, outcome.problems) == (None, [])
    assert len(outcome.lost) > 0
    (expected,) = outcome.outputs.values()
    assert seen(tmp_path / "out") == sorted(expected.rows())


@pytest.mark.parametrize(
    ("protocol", "moments"),
    [
        ("uncoordinated", ["manifest after", "rename after"]),
        pytest.param("uncoordinated", MOMENTS, marks=SLOW),
        pytest.param("unaligned", MOMENTS, marks=SLOW),
    ],
)
def test_drivers_killed_while_they_publish_leave_every_row_once(tmp_path, protocol, moments):
    hold = Hold(tmp_path)
    job = the_job(protocol, hold)
    directory = a_directory(tmp_path / "runs", job, tmp_path / "out")
    support = {"PYTHONPATH": os.pathsep.join([str(SCRIPT.parents[1] / "support"), *sys.path])}
    for moment in [*moments, "never"]:
        command = [
            sys.executable,
            str(SCRIPT),
            str(directory.path),
            str(tmp_path),
            protocol,
            moment,
        ]
        done = subprocess.run(
            command, env={**os.environ, **support}, capture_output=True, text=True, timeout=300
        )
        ended = 0 if moment == "never" else -signal.SIGKILL
        assert done.returncode == ended, (moment, done.stderr)
    outputs = public(directory, job)
    (expected,) = outputs.values()
    assert seen(tmp_path / "out") == sorted(expected.rows())
    assert list(WORKLOADS["q12"].judge(PARAMS, outputs, {}, job.guarantee)) == []
