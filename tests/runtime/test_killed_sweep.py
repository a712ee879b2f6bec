"""A sweep whose process is killed: nothing is left running, and it goes on with what is missing."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

PATIENCE_S = 240

FILE = """
launcher = "processes"
[base]
flow = "q12"
protocol = "aligned"
slots = 1
size = "small"
rate = 300
duration = "1s"
interval = "200ms"
"""

#: The command itself, where there is no Spark; and that others use the machine meanwhile is no reason to
#: measure anything again.
PROGRAM = """
import sys
from snapline.__main__ import main
from snapline.experiments import sweep
from snapline.runs import run
sweep.FOREIGN_MAX = 2.0
run.own_session = None
sys.argv = ["snapline", "sweep", "tiny.toml", "--to", "results"]
main()
"""


def eventually(what):
    until_s = time.monotonic() + PATIENCE_S
    while not (found := what()):
        assert time.monotonic() < until_s, "in vain"
        time.sleep(0.02)
    return found


@contextmanager
def sweeping(place: Path):
    """A sweep in a process, session and group of its own, with all that it starts."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], cwd=place, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


def alive(group: int) -> list[int]:
    """The processes of a group that run; one that has ended and was not waited for is none of them."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                state, _, its_group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
                if int(its_group) == group and state != "Z":
                    found.append(int(entry.name))
    return found


def cells(place: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in place.glob("results/cells/*.json")}


def under_way(place: Path) -> bool:
    """Whether a cell is done, and the run of the next one has decided something."""
    named = {json.loads(content)["run"] for content in cells(place).values()}
    decided = {file.parents[2].name for file in place.glob("results/runs/*/store/decision/*.obj")}
    return bool(named and decided - named)


@pytest.mark.slow  # test_sweep_runs.py has the same without processes
def test_a_sweep_that_was_killed_goes_on_and_leaves_nobody_behind(tmp_path):
    (tmp_path / "tiny.toml").write_text(FILE)
    with sweeping(tmp_path) as first:
        eventually(lambda: under_way(tmp_path) or first.poll() is not None)
        assert first.poll() is None, first.stdout.read()
        os.kill(first.pid, signal.SIGSTOP)  # so that it is not done before the other one has tried
        with sweeping(tmp_path) as second:
            told, _ = second.communicate(timeout=PATIENCE_S)
        assert second.returncode == 2
        assert "another sweep writes to" in told
        first.kill()  # it alone: its slots have to notice it themselves
        first.wait()
        eventually(lambda: not alive(first.pid))
    before = cells(tmp_path)
    assert len(before) == 1
    with sweeping(tmp_path) as again:
        told, _ = again.communicate(timeout=PATIENCE_S)
        assert again.returncode == 0, told
        assert not alive(again.pid)
    after = cells(tmp_path)
    assert "1 of 2 runs done" in told
    assert {name: after[name] for name in before} == before
    results = [json.loads(content) for content in after.values()]
    assert [each["kept"] for each in results] == ["yes"] * 2
    assert sorted(each["again"] for each in results) == [False, True]
    assert len({each["run"] for each in results}) == 2
