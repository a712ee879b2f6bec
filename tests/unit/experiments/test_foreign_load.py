"""How much of the machine others use: told apart from what a run itself uses."""

import os
import subprocess
import sys

import pytest

from snapline.experiments.machine import foreign_load
from snapline.experiments.machine.foreign_load import (
    LoadWatch,
    MachineTime,
    ProcessBook,
    ProcessTime,
    foreign_share,
    read_machine,
)

ME, JAVA, DAEMON, SLOT, EDITOR, INIT = (100, 1), (200, 2), (300, 3), (400, 4), (900, 1), (1, 0)


def of(parent, used, handed_on=0):
    return ProcessTime(parent[0], used, handed_on)


def test_the_load_of_others_is_what_other_processes_used_and_a_host_took():
    before = MachineTime(1_000, 0, 100)
    assert foreign_share(before, before, 0, 0) == 0.0
    assert foreign_share(before, MachineTime(1_200, 10, 160), 40, 20) == pytest.approx(30 / 200)
    assert foreign_share(before, MachineTime(1_200, 0, 160), 0, 210) == 1.0


def test_what_processes_used_that_cannot_be_seen_counts_beyond_the_error_of_samples():
    before = MachineTime(1_000, 0, 100)
    assert foreign_share(before, MachineTime(1_200, 0, 160), 40, 0) == 0.0
    assert foreign_share(before, MachineTime(1_200, 0, 200), 40, 0) == pytest.approx(40 / 200)


def test_time_spent_on_interrupts_is_not_taken_for_the_work_of_others(tmp_path, monkeypatch):
    def at(user, softirq, idle):
        (tmp_path / "stat").write_text(f"cpu  {user} 5 20 {idle} 3 1 {softirq} 0 0 0\ncpu0 1 1 1\n")
        return read_machine()

    monkeypatch.setattr(foreign_load, "_PROC", tmp_path)
    idle = at(user=100, softirq=10, idle=1_000)
    assert foreign_share(idle, at(user=100, softirq=110, idle=1_100), 0, 0) == 0.0
    assert foreign_share(idle, at(user=200, softirq=60, idle=1_050), 0, 0) == pytest.approx(0.4)


def test_descendants_are_ours_and_what_was_used_before_the_first_look_does_not_count():
    book = ProcessBook(ME[0])
    book.look({INIT: of(INIT, 5), ME: of(INIT, 50), JAVA: of(ME, 70), EDITOR: of(INIT, 900)})
    book.look({
        INIT: of(INIT, 5), ME: of(INIT, 51), JAVA: of(ME, 80), SLOT: of(JAVA, 300),
        EDITOR: of(INIT, 907),
    })  # fmt: skip
    assert (book.own, book.others) == (1 + 10 + 300, 7)


def test_what_a_process_had_used_stays_counted_when_it_ends_and_nobody_waits_for_it():
    book = ProcessBook(ME[0])
    book.look({ME: of(INIT, 0), DAEMON: of(ME, 0)})
    book.look({ME: of(INIT, 0), DAEMON: of(ME, 0), SLOT: of(DAEMON, 300)})
    book.look({ME: of(INIT, 0), DAEMON: of(ME, 0)})
    assert (book.own, book.others) == (300, 0)


def test_what_a_child_used_after_the_last_look_is_handed_on_to_who_waits_for_it():
    book = ProcessBook(ME[0])
    book.look({ME: of(INIT, 0), SLOT: of(ME, 10, 5)})
    book.look({ME: of(INIT, 0), SLOT: of(ME, 110, 5)})
    book.look({ME: of(INIT, 0, handed_on=10 + 120 + 5)})
    assert book.own == 100 + 20
    book.look({ME: of(INIT, 0, handed_on=135 + 40)})  # of a child that was never seen
    assert book.own == 120 + 40


def test_a_descendant_stays_ours_when_its_parent_has_ended():
    book = ProcessBook(ME[0])
    book.look({ME: of(INIT, 0), DAEMON: of(ME, 0), SLOT: of(DAEMON, 0)})
    book.look({ME: of(INIT, 0), SLOT: of(INIT, 60)})
    assert (book.own, book.others) == (60, 0)


def test_a_number_that_was_given_again_is_another_process():
    book = ProcessBook(ME[0])
    book.look({ME: of(INIT, 0), SLOT: of(ME, 500)})
    book.look({ME: of(INIT, 0), (SLOT[0], 77): of(INIT, 20)})
    assert (book.own, book.others) == (0, 20)


CHILD_OF_NOBODY = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # as Spark's daemon does
if not (child := os.fork()):
    while time.process_time() < 1.5:
        pass
    os._exit(0)
try:
    os.waitpid(child, 0)
except ChildProcessError:
    pass
"""


def test_the_work_of_a_worker_for_which_nobody_waits_is_ours():
    with LoadWatch() as load:
        subprocess.run([sys.executable, "-c", CHILD_OF_NOBODY], check=True)
    ticks = load._book.own
    assert ticks >= 0.5 * os.sysconf("SC_CLK_TCK")
    assert 0.0 <= load.foreign <= 1.0
