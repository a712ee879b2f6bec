"""Operators that need long for one batch: their slot is busy, not dead; one that never returns is found."""

import os
import sys
import time
from dataclasses import replace
from pathlib import Path

from process_slots import PATIENT, run_job
from pyspark import cloudpickle

import snapline as sl
from snapline.core.protocol import Options
from snapline.dataflow.deploy import deploy
from snapline.engine.job import Job, Settings
from snapline.protocols import PROTOCOLS
from snapline.runtime.launch.processes import ProcessSlots

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the slots cannot import it
SILENCE_S = 2.0
LONG_S = 2.5 * SILENCE_S
MARKED = 30  # the number of the record with which it takes long


class Slow(sl.Operator):
    """Computes for long with one record, and writes down which process began and ended that."""

    def __init__(self, folder: str, for_s: float) -> None:
        self.folder = Path(folder)
        self.for_s = for_s

    def process(self, port, batch):
        if (batch["number"] == MARKED).any():
            self.note("began")
            until_s = time.monotonic() + self.for_s
            while time.monotonic() < until_s:
                sum(range(1_000))  # in Python, as code of a user's would, and not asleep
            self.note("ended")
        return (("out", batch),)

    def note(self, what):
        with (self.folder / what).open("a") as notes:
            notes.write(f"{os.getpid()}\n")


def numbers(n):
    return {"number": n, "key": n % 10}


def run_slow(tmp_path, for_s, timeouts):
    """Run a flow with a slow operator; what came of it, and who began and ended the long call."""
    flow = sl.Dataflow("mine")
    source = flow.source(sl.generated(numbers, rate=400), name="numbers")
    source.key_by("key").apply(lambda: Slow(str(tmp_path), for_s), name="model").sink("out")
    chosen = PROTOCOLS["aligned"]
    job = Job(
        "mine",
        deploy(flow.bind(2, 1_000), 2, lean=True),
        chosen,
        Options(interval_ms=300),
        chosen.guarantees[0],
        Settings(linger_ms=2),
    )
    driven = run_job(tmp_path, job, ProcessSlots(), timeouts=timeouts)
    notes = [tmp_path / what for what in ("began", "ended")]
    return driven, *(path.read_text().split() if path.exists() else [] for path in notes)


def test_a_slot_whose_operator_computes_for_longer_than_the_time_out_is_not_given_up(tmp_path):
    """A busy machine may make others seem silent, so only the process that computed is looked at."""
    timeouts = replace(PATIENT, silence_s=SILENCE_S)
    driven, began, ended = run_slow(tmp_path, LONG_S, timeouts)
    assert driven.problem is None
    assert began[0] == ended[0], "who began the long call has ended it"


def test_an_operator_that_does_not_come_back_twice_ends_the_run_and_the_user_is_told(tmp_path):
    """A line that is committed before the second call is progress, so there may be a third one."""
    timeouts = replace(PATIENT, silence_s=SILENCE_S, computing_s=3.0)
    driven, began, ended = run_slow(tmp_path, 600, timeouts)
    assert (len(began) in (2, 3), ended) == (True, [])
    assert driven.problem is not None
    assert "an operator has not come back from one call for 3 s" in driven.problem
    assert "option batch" in driven.problem
