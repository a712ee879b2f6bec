"""A kill that comes too late: the process is gone already, and the driver has not yet been told."""

import os
import signal

from process_slots import run_processes

from snapline.journal.fault_happenings import FaultMissed, ProcessKilled


def test_a_kill_of_a_process_that_is_gone_is_none_and_disturbs_nothing(tmp_path, monkeypatch):
    sent = []
    send = os.kill

    def late(pid, number):
        if number == signal.SIGKILL and pid in sent:
            raise ProcessLookupError
        send(pid, number)
        sent.append(pid)

    monkeypatch.setattr(os, "kill", late)
    faults = "kill slot=1 at=800ms; kill slot=1 at=800ms"
    outcome = run_processes(tmp_path, "aligned", faults, duration_ms=2_000)
    assert (outcome.problem, outcome.problems) == (None, [])
    assert outcome.lost == [1]
    (killed,) = outcome.what(ProcessKilled)
    assert killed.what.pids[0] in sent


def test_a_kill_of_a_slot_that_is_not_back_yet_is_said_to_have_missed(tmp_path):
    faults = "kill slot=1 at=800ms; kill slot=1 at=850ms"
    outcome = run_processes(tmp_path, "aligned", faults, duration_ms=2_000)
    assert (outcome.problem, outcome.problems) == (None, [])
    assert len(outcome.what(ProcessKilled)) + len(outcome.what(FaultMissed)) == 2
    assert outcome.what(ProcessKilled)
