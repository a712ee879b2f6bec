"""What a slot does between two looks at its sockets: none is for nothing; what it sends leaves first."""

from collections import Counter

import pytest

from snapline.core.protocol import Options
from snapline.dataflow.deploy import deploy
from snapline.engine.job import Job, Settings
from snapline.protocols import PROTOCOLS
from snapline.rundir.directory import RunDirectory
from snapline.runtime.slot import process as slot_process
from snapline.runtime.slot.process import STEPS_PER_POLL, SlotProcess, SlotSpec
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params


class Engine:
    """Takes inputs that were written down; a source is read at `R`, anything else is taken."""

    def __init__(self, process: SlotProcess, script: str) -> None:
        self.process = process
        self.script = list(script)
        self.inputs = self
        self.taken = 0

    @property
    def waiting(self) -> bool:
        """Whether something from this or another slot is there to be taken."""
        return bool(self.script)

    def step(self) -> bool:
        """Take the next input."""
        if not self.script:
            return False
        self.taken += 1
        if self.script.pop(0) == "R":
            self.process.ingested(1)
            self.process.loop.flush_soon(self)
        return True

    def flush(self) -> None:
        """Send what was queued, which is nothing."""


@pytest.fixture
def process(tmp_path, monkeypatch):
    flow = WORKLOADS["counting"].build(Params(1, 1, 10, 1_000))
    protocol = PROTOCOLS["aligned"]
    job = Job("it", deploy(flow, 1), protocol, Options(), protocol.guarantees[0], Settings())
    directory = RunDirectory.create(tmp_path, "it", "aligned", {})
    monkeypatch.setattr(slot_process, "dial", lambda *asked: None)
    made = SlotProcess(SlotSpec(("", 0), str(directory.path), job, 1.0, 60.0, 60.0), bytes(32))
    yield made
    made.background.close()
    made.loop.close()


def passes(process, script, monkeypatch):
    """How often the slot looks at its sockets without waiting, and how often it would wait."""
    process.engine, looks = Engine(process, script), Counter()
    poll = process.loop.poll

    def look(timeout_s=None):
        looks["waits" if timeout_s is None else "looks"] += 1
        process.leaving = timeout_s is None
        poll(0)

    monkeypatch.setattr(process, "_beat", lambda seq: None)
    monkeypatch.setattr(process, "_publish_at_once", lambda: None)
    monkeypatch.setattr(process, "_pulse", lambda **_: process.loop.poll(None))
    monkeypatch.setattr(process.loop, "poll", look)
    process._live()
    looks["looks"] -= 1  # the one with which every process ends ...
    looks["waits"] -= 1  # ... and the pulse before it
    assert not process.engine.script
    return looks


def test_a_slot_that_has_taken_all_inputs_waits_at_once(process, monkeypatch):
    assert passes(process, "ttt", monkeypatch) == {"looks": 0, "waits": 1}


def test_a_slot_with_many_inputs_looks_at_its_sockets_now_and_then(process, monkeypatch):
    assert passes(process, "t" * (STEPS_PER_POLL * 2 + 1), monkeypatch) == {"looks": 2, "waits": 1}


def test_a_slot_whose_inputs_take_long_looks_at_its_sockets_after_each(process, monkeypatch):
    monkeypatch.setattr(slot_process, "WORK_S", -1.0)
    assert passes(process, "ttt", monkeypatch) == {"looks": 3, "waits": 1}


def test_what_a_source_sends_leaves_before_anything_is_taken(process, monkeypatch):
    assert passes(process, "Rt", monkeypatch) == {"looks": 1, "waits": 1}


def test_what_a_source_sends_leaves_with_the_wait_if_nothing_is_to_be_taken(process, monkeypatch):
    assert passes(process, "R", monkeypatch) == {"looks": 0, "waits": 1}
