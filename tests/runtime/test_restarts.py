"""Slots that fail are replaced until it is hopeless, and then the run says why it was given up."""

import os
import signal
from dataclasses import replace

import pytest
from process_slots import PATIENT, committed, lost, processes_of, run_processes

from snapline.journal.fault_happenings import FaultMissed, ProcessKilled
from snapline.journal.happenings import ProcessNotStarted, SlotLost
from snapline.runtime.driver.restart import RestartPolicy
from snapline.runtime.launch.processes import PROGRAM

#: a process for which this is true of its tag kills itself before it says anything
DIES = """
import os, signal, sys
if {}:
    os.kill(os.getpid(), signal.SIGKILL)
"""
#: it lives, but never comes as far as the driver
HANGS = """
import sys, time
if sys.argv[1] == "process-2":
    time.sleep(600)
"""


def dies(which):
    return DIES.format(which) + PROGRAM


def reasons(outcome):
    return [entry.what.because for entry in outcome.what(ProcessNotStarted)]


def kill_after_first_line(slot):
    """Kill a slot for real, without any fault of the plan, once a line is committed."""
    killed = []

    def act(driver, entry):
        if committed(driver, entry) and not killed:
            killed.append(driver.killer.pid(slot))
            os.kill(killed[0], signal.SIGKILL)

    return act


@pytest.mark.parametrize("spares", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_replacement_that_dies_before_it_registers_is_replaced(tmp_path, spares):
    """With a spare, the spare takes over, and what dies is to become the next spare."""
    first = 2 + spares
    outcome = run_processes(
        tmp_path,
        "aligned",
        duration_ms=1_500,
        spares=spares,
        program=dies(f"sys.argv[1] == 'process-{first}'"),
        on_event=kill_after_first_line(1),
        until=lambda driver, entry: isinstance(entry.what, ProcessNotStarted),
    )
    assert (outcome.problem, outcome.problems, outcome.lost) == (None, [], [1])
    assert reasons(outcome) == ["a process was killed by signal 9 before it registered"]
    assert len(processes_of(outcome.driver)) >= first + 1 + (not spares)


def test_a_replacement_that_does_not_register_in_time_is_given_up_and_replaced(tmp_path):
    strike = kill_after_first_line(1)

    def act(driver, entry):
        if isinstance(entry.what, SlotLost):
            driver.timeouts.register_s = 0.2  # of the one that is launched now ...
        elif isinstance(entry.what, ProcessNotStarted):
            driver.timeouts.register_s = (
                PATIENT.register_s
            )  # ... but not of those that come after it
        strike(driver, entry)

    outcome = run_processes(
        tmp_path, "aligned", duration_ms=1_500, program=HANGS + PROGRAM, on_event=act, until=lost
    )
    assert (outcome.problem, outcome.problems, outcome.lost) == (None, [], [1])
    assert reasons(outcome) == ["a process did not register within 0.2 s"]
    assert processes_of(outcome.driver)["process-2"].returncode == -signal.SIGKILL


def test_where_no_process_ever_comes_the_first_reason_is_said_first(tmp_path):
    outcome = run_processes(
        tmp_path,
        "aligned",
        program=dies("True"),
        timeouts=replace(PATIENT, restarts=RestartPolicy(failures=3)),
    )
    assert outcome.problem is not None
    first, _, rest = outcome.problem.partition("; ")
    assert first == "a process was killed by signal 9 before it registered"
    assert "3 processes failed" in rest
    assert len(processes_of(outcome.driver)) >= 3


def test_kills_that_were_asked_for_use_nothing_up(tmp_path):
    """More of them than failures are allowed, and no line is ever committed."""
    kills = "\n".join(f"kill slot={n % 2} at={300 + 400 * n}ms" for n in range(4))
    outcome = run_processes(
        tmp_path,
        "none",
        kills,
        duration_ms=2_500,
        timeouts=replace(PATIENT, restarts=RestartPolicy(failures=2)),
    )
    assert outcome.problem is None
    assert len(outcome.what(ProcessKilled)) + len(outcome.what(FaultMissed)) == 4
    assert len(outcome.lost) >= 2
