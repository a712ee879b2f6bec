"""`snapline run --duration forever`: Ctrl-C stops it with a last line, and `--resume` goes on."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from run_helpers import assert_dead, commits, happenings, only
from spark_slots import eventually
from test_interrupt import SNAPLINE, family

from snapline.journal.happenings import JobSuspended

pytestmark = pytest.mark.spark

RUN = [
    "run",
    "q12",
    "--rate",
    "300",
    "--duration",
    "forever",
    "--interval",
    "400ms",
    "--slots",
    "1",
]


def stopped(runs: Path, words: list[str], number: int, *, group: bool) -> str:
    """Run the command, and send it a signal once it has committed another line; what it said."""
    before = sum(map(commits, happenings(runs, "*/journal/driver-*")))
    command = subprocess.Popen(
        [*SNAPLINE, *words, "--runs", str(runs), "--silence", "60s"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with command:
        try:
            eventually(
                lambda: (
                    sum(map(commits, happenings(runs, "*/journal/driver-*"))) > before
                    or command.poll() is not None
                ),
                "a committed line",
            )
            pids = list(family(command.pid))
            (os.killpg if group else os.kill)(command.pid, number)
            _, said = command.communicate(timeout=240)
        finally:
            command.kill()
    assert command.returncode == 128 + number, said
    assert_dead(pids)
    return said


def test_ctrl_c_stops_a_run_without_an_end_and_a_resume_goes_on(tmp_path):
    said = stopped(tmp_path, RUN, signal.SIGINT, group=True)
    [run] = [path for path in tmp_path.iterdir() if (path / "run.json").exists()]
    assert f"stopped with a last line; go on with: snapline run --resume {run.name}" in said
    assert f"judge what it has put out with: snapline validate {run.name}" in said
    again = stopped(tmp_path, ["run", "--resume", run.name], signal.SIGTERM, group=False)
    assert "stopped with a last line" in again
    assert len(only(happenings(run / "journal", "driver-*"), JobSuspended)) == 2
    asked = subprocess.run(
        [*SNAPLINE, "validate", run.name, "--runs", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.returncode == 0, asked.stderr
    assert "up to its last line: it is not over" in asked.stdout
