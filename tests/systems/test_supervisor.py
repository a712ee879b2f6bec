"""A program of a system: killed as a group, started again, given up, and never left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from snapline.systems.harness.base import State
from snapline.systems.harness.processes import Group, lives
from snapline.systems.harness.supervisor import Supervisor

#: a program with a child of its own, which says who they are; both sleep
PROGRAM = """
import subprocess, sys, threading, time
from pathlib import Path
from snapline.systems.harness.processes import die_with_parent
threading.Thread(target=die_with_parent, daemon=True).start()
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], stdin=subprocess.PIPE)
word = Path(sys.argv[1])
word.with_suffix(".draft").write_text(str(child.pid))
word.with_suffix(".draft").rename(word)
time.sleep(600)
"""


def eventually(holds, what):
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


class Program:
    """Lives of a program, under a supervisor."""

    def __init__(self, directory, code=PROGRAM):
        self.word = directory / "child"
        self.log = directory / "log"
        self.code = code
        self.done = 0
        self.supervisor = Supervisor(self.launch, self.ready, lambda: self.done, self.last_words)

    def launch(self):
        self.word.unlink(missing_ok=True)
        return Group([sys.executable, "-c", self.code, str(self.word)], self.log)

    def ready(self):
        return [int(self.word.read_text())] if self.word.exists() else None

    def last_words(self):
        return self.log.read_text().strip()

    def until(self, state):
        eventually(lambda: self.supervisor.look() is state, state)


@pytest.fixture
def program(tmp_path):
    program = Program(tmp_path)
    yield program
    program.supervisor.stop()


def state_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_kill_hits_the_program_and_its_child_and_a_new_life_begins(program):
    program.until(State.RUNNING)
    hit = program.supervisor.kill()
    assert len(hit) == 2
    assert not any(map(lives, hit))
    assert program.supervisor.look() is State.DOWN
    program.until(State.RUNNING)
    assert program.supervisor.restarts == 1
    assert not set(program.supervisor.pids()) & set(hit)


def test_nobody_is_hit_while_it_is_down(program):
    assert program.supervisor.kill() == []
    program.until(State.RUNNING)
    program.supervisor.kill()
    assert program.supervisor.kill() == []
    assert program.supervisor.pause() == []


def test_a_pause_stops_both_and_they_go_on(program):
    program.until(State.RUNNING)
    hit = program.supervisor.pause()
    eventually(lambda: {state_of(pid) for pid in hit} == {"T"}, "both stand still")
    program.supervisor.resume()
    eventually(lambda: "T" not in {state_of(pid) for pid in hit}, "both go on")
    assert program.supervisor.look() is State.RUNNING


def test_what_ends_by_itself_again_and_again_has_failed(tmp_path):
    program = Program(tmp_path, "raise SystemExit('no disk')")
    program.until(State.FAILED)
    assert program.supervisor.restarts == 2
    assert "3 times in a row" in program.supervisor.problem
    assert "no disk" in program.supervisor.problem


def test_what_gets_on_between_two_deaths_is_started_again(tmp_path):
    program = Program(tmp_path, "raise SystemExit(1)")

    def looks():
        program.done += 1
        return program.supervisor.look() is State.FAILED or program.supervisor.restarts >= 4

    eventually(looks, "five lives")
    assert program.supervisor.problem is None
    program.supervisor.stop()


def test_one_that_returns_has_finished(tmp_path):
    program = Program(tmp_path, "")
    program.until(State.FINISHED)
    assert program.supervisor.look() is State.FINISHED
    program.supervisor.stop()


PARENT = """
import signal, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_supervisor import Program
from snapline.systems.harness.base import State
program = Program(Path(sys.argv[1]))
program.until(State.RUNNING)
if sys.argv[3] == "paused":
    program.supervisor.pause()
Path(sys.argv[1], "pids").write_text(" ".join(map(str, program.supervisor.pids())))
time.sleep(600)
"""


@pytest.mark.parametrize("how", ["running", "paused"])
def test_nothing_outlives_whoever_started_it(tmp_path, how):
    here = str(Path(__file__).parent)
    with subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path), here, how]) as parent:
        try:
            said = tmp_path / "pids"
            eventually(lambda: said.exists() and said.read_text().count(" ") == 1, "its processes")
        finally:
            os.kill(parent.pid, signal.SIGKILL)
    pids = [int(pid) for pid in said.read_text().split()]
    eventually(lambda: not any(map(lives, pids)), f"the end of {pids}")
