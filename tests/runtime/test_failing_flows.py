"""Code of a dataflow that raises: started again once, then the run ends with a word that helps."""

import sys
from pathlib import Path

import numpy as np
from process_slots import run_job
from pyspark import cloudpickle

import snapline as sl
from snapline.core.protocol import Options
from snapline.dataflow.deploy import deploy
from snapline.engine.job import Job, Settings
from snapline.ids import task_id
from snapline.journal.happenings import SlotLost
from snapline.protocols import PROTOCOLS
from snapline.runs.drive import flow_failed
from snapline.runtime.launch.processes import ProcessSlots
from snapline.storage.api import rows_of

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the slots cannot import it
BAD = 300  # the number of the record with which something is wrong


class Picky(sl.Operator):
    """Does not take every record."""

    def __init__(self, once: str = "") -> None:
        self.once = once  # a file that says that it was picky before

    def process(self, port, batch):
        if (batch["number"] == BAD).any() and not (self.once and Path(self.once).exists()):
            Path(self.once or "/dev/null").touch()
            raise ValueError("this one not")  # HERE
        return (("out", batch),)


def numbers(n):
    return {"number": n, "key": n % 10}


def run_flow(tmp_path, build, protocol="aligned", duration_ms=1_500):
    """Run a flow on two slots; what the user is told, and what happened."""
    flow = sl.Dataflow("mine")
    build(flow.source(sl.generated(numbers, rate=400), name="numbers"))
    chosen = PROTOCOLS[protocol]
    job = Job(
        "mine",
        deploy(flow.bind(2, duration_ms), 2, lean=True),
        chosen,
        Options(interval_ms=300),
        chosen.guarantees[0],
        Settings(linger_ms=2),
    )
    launcher = ProcessSlots()
    driven = run_job(tmp_path, job, launcher)
    assert launcher.complaints() == [], "nothing is printed by the slots themselves"
    return driven


def line_of(mark):
    """Where something stands in this file."""
    lines = Path(__file__).read_text().splitlines()
    (line,) = [n for n, text in enumerate(lines, 1) if text.rstrip().endswith(f"# {mark}")]
    return f"{__file__}, line {line}"


def test_an_operator_that_always_raises_ends_the_run_with_its_name_its_line_and_its_input(tmp_path):
    driven = run_flow(
        tmp_path,
        lambda s: s.key_by("key").apply(Picky, name="picky").key_by("key").count().sink("c"),
    )
    raised = driven.driver.raised
    assert raised is not None
    assert (raised.operator, raised.cause) == ("picky", "ValueError: this one not")
    assert raised.code == line_of("HERE")
    assert "of numbers/" in raised.where
    assert ">picky/" in raised.where
    failed = flow_failed(raised, driven.directory)
    assert (failed.operator, failed.cause) == ("picky", "ValueError: this one not")
    assert "Traceback" not in str(failed)
    (story, *_) = driven.directory.errors.iterdir()
    assert "Traceback" in story.read_text()
    assert driven.directory.result() is None, "it can be resumed"


def test_an_operator_that_raises_once_is_started_again_and_the_run_goes_on(tmp_path):
    mark = tmp_path / "picky once"
    driven = run_flow(tmp_path, lambda s: s.apply(lambda: Picky(str(mark)), name="picky").sink("c"))
    assert (driven.problem, driven.driver.raised) == (None, None)
    assert [type(entry.what) for entry in driven.happened].count(SlotLost) == 1
    tasks = (task_id("c", n) for n in (0, 1))
    found = [b["number"] for b in rows_of(driven.directory.output, tasks, "committed")]
    assert sorted(np.concatenate(found).tolist()) == list(range(600))


def test_without_lines_it_is_ended_as_well(tmp_path):
    """Who starts again begins in the present, so there must be input until then."""
    driven = run_flow(tmp_path, lambda s: s.map(lambda b: b["colour"]).sink("c"), "none", 80_000)
    assert driven.driver.raised is not None
    assert driven.driver.raised.operator == "map"
    assert driven.driver.raised.where.endswith("of 'numbers'")
