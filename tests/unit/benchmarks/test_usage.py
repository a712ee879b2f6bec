"""CPU time and memory of a run: of the processes that are slots, from the first record due to the end."""

import os
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from benchmarks.common import memory, usage
from benchmarks.compare import neighbour
from snapline.journal.entry import Happened
from snapline.journal.happenings import JobFinished, JobRunning

SPEND = "import time\nwhile time.process_time() < {s}: pass\nprint(flush=True)\ninput()"


@pytest.fixture
def process():
    """A process that has computed for 0.3 s, and then waits."""
    command = [sys.executable, "-c", SPEND.format(s=0.3)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    yield child
    child.kill()
    child.communicate()


def driver(*pids):
    """A driver whose roster has slots with these ids, and a spare."""

    def member(pid, life):
        return SimpleNamespace(tag=f"tag-{pid}", life=life, hello=SimpleNamespace(pid=pid))

    members = {pid: member(pid, (0, 0)) for pid in pids}
    spare = {"spare": member(os.getpid(), None)}
    return SimpleNamespace(roster=SimpleNamespace(members=members | spare))


def happened(what):
    return Happened(0, "coordinator", 0, what)


def test_what_a_process_had_computed_before_the_first_record_does_not_count(process):
    whole, late = usage.Usage(), usage.Usage()
    late.begin(driver(process.pid))
    for each in (whole, late):
        each.observe(driver(process.pid), happened(JobFinished()))
    assert sum(whole.cpu_s.values()) >= 0.25
    assert sum(late.cpu_s.values()) < 0.05
    assert list(late.cpu_s) == [f"tag-{process.pid}"]


def test_it_is_read_at_the_end_of_the_job_and_not_before(process):
    found = usage.Usage()
    found.observe(driver(process.pid), happened(JobRunning()))
    assert not found.cpu_s
    assert not found.rss


def test_the_peak_of_the_memory_is_that_of_all_slots(process):
    found = usage.Usage()
    before = memory.peak_of(process.pid)  # it may still touch a page or two on its way to its wait
    found.observe(driver(process.pid), happened(JobFinished()))
    after = memory.peak_of(process.pid)
    assert 1_000_000 < before.rss <= found.rss <= after.rss
    assert 0 < found.pss <= found.rss


def test_memory_that_was_given_back_counts():
    code = "x = b'x' * 80_000_000\ndel x\nprint(flush=True)\ninput()"
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    child.stdout.readline()
    now, peak = memory.memory_of(child.pid), memory.peak_of(child.pid)
    child.kill()
    child.communicate()
    assert peak.rss > now.rss + 60_000_000
    assert peak.pss > now.pss + 60_000_000


def test_a_process_that_is_gone_is_no_error(process):
    process.kill()
    process.wait()
    found = usage.Usage()
    found.begin(driver(process.pid))
    found.observe(driver(process.pid), happened(JobFinished()))
    assert found.cpu_s == {}
    assert memory.peak_of(process.pid) is None


def test_a_busy_neighbour_computes_and_is_gone_afterwards(monkeypatch):
    started = []
    popen = subprocess.Popen

    def noted(*args):
        started.append(popen(*args))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", noted)
    with neighbour.beside("quiet"):
        assert not started
    with neighbour.beside("busy"):
        (busy,) = started
        deadline = time.monotonic() + 20
        while usage.cpu_s(busy.pid) < 0.1 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert usage.cpu_s(busy.pid) >= 0.1
    assert busy.returncode is not None
