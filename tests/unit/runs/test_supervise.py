"""Who stays behind when a driver is to die: it resumes what died of its own fault, and nothing else."""

import os
import signal
import subprocess
import sys
import time

import pytest

from snapline.runs.supervise import kills_driver

PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from snapline.journal.entry import COORDINATOR, Happened
from snapline.journal.fault_happenings import CoordinatorKilled
from snapline.rundir.journal_file import JournalFile
from snapline.rundir.directory import RunDirectory
from snapline.runs.supervise import in_children

directory = RunDirectory.create(Path(sys.argv[1]), "q12", "aligned", {})
(directory.path / "journal").mkdir()
how = sys.argv[2]

def attempt(after_ms):
    print("attempt", after_ms, flush=True)
    if how == "wait":
        signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
        print("waiting", flush=True)
        # One long sleep would not end for a signal that comes just before it: its handler runs behind it.
        for _ in range(6_000):
            time.sleep(0.1)
    elif how == "nap":
        time.sleep(5)
    elif how == "other" or after_ms < 3_000:
        if how != "other":
            file = JournalFile(directory.path / "journal" / f"driver-{os.getpid()}.jsonl")
            at_us = 2_500_000 if after_ms < 0 else 3_000_000
            file.add(Happened(at_us, COORDINATOR, 1, CoordinatorKilled(how)))
            file.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    return 7

sys.exit(in_children(directory, attempt, lambda death: print("dead at", death.at_ms, flush=True)))
"""


def supervised(tmp_path, how):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), how],
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_run_whose_driver_has_killed_itself_is_resumed_with_what_comes_later(tmp_path):
    done = supervised(tmp_path, "kill driver at=2500ms")
    said = ["attempt -1", "dead at 2500", "attempt 2500", "dead at 3000", "attempt 3000"]
    assert (done.returncode, done.stdout.splitlines()) == (7, said)


def test_nobody_resumes_before_the_coordinator_has_been_away_for_so_long(tmp_path):
    begun = time.monotonic()
    supervised(tmp_path, "kill coordinator at=2500ms for=1s")
    assert time.monotonic() - begun > 2


def test_a_driver_that_somebody_else_has_killed_stays_dead(tmp_path):
    done = supervised(tmp_path, "other")
    assert (done.returncode, done.stdout) == (128 + signal.SIGKILL, "attempt -1\n")


def test_who_is_asked_to_end_asks_its_child(tmp_path):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), "wait"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["attempt -1\n", "waiting\n"]
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(300) == 143


SIGNAL_BEFORE_THE_WAIT = """
import ctypes, functools, operator, os, signal
waitpid, kill = os.waitpid, ctypes.CDLL(None).kill

def signalled(child, options):
    # Neither call goes back to Python code before the other, so no handler runs between them.
    os.waitpid = waitpid
    calls = (functools.partial(kill, os.getpid(), signal.SIGTERM),)
    calls += (functools.partial(waitpid, child, options),)
    return list(map(operator.call, calls))[1]

os.waitpid = signalled
"""


def test_a_signal_that_comes_just_before_the_wait_is_passed_on(tmp_path):
    """The child would sleep for some seconds and end with 7, and the signal would come too late."""
    program = SIGNAL_BEFORE_THE_WAIT + PROGRAM
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path), "nap"], timeout=300)
    assert done.returncode == 128 + signal.SIGTERM


@pytest.mark.parametrize(
    ("faults", "needed"),
    [
        ("kill driver at=1s", True),
        ("damage slot=1 at=1s; kill driver on=round", True),
        ("kill coordinator at=1s for=1s", True),
        ("kill slot=1 at=1s; pause driver at=1s for=1s", False),
        ("", False),
    ],
)
def test_only_a_run_whose_driver_is_to_die_needs_one(faults, needed):
    assert kills_driver(faults) == needed
