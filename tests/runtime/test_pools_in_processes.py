"""Operators in slots of their own, with real processes: a pool is killed, and every record counts once."""

import sys

from process_slots import run_job
from pyspark import cloudpickle

import snapline as sl
from snapline.core.protocol import Options
from snapline.dataflow.deploy import deploy
from snapline.engine.job import Job, Settings
from snapline.journal.happenings import SlotLost
from snapline.protocols import PROTOCOLS
from snapline.runtime.launch.processes import ProcessSlots
from snapline.storage.api import rows_of

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the slots cannot import it


def numbers(n):
    return {"number": n, "key": n % 7}


def test_a_pool_that_is_killed_goes_back_with_all_others_and_every_record_counts_once(tmp_path):
    flow = sl.Dataflow("mine")
    source = flow.source(sl.generated(numbers, rate=400), name="numbers")
    source.key_by("key").count(name="counts").pool("counting").sink("c")
    chosen = PROTOCOLS["uncoordinated"]
    job = Job(
        "mine",
        deploy(flow.bind(2, 2_000), 2, lean=True, pools={"counting": 1}),
        chosen,
        Options(interval_ms=300),
        chosen.guarantees[0],
        Settings(linger_ms=2),
    )
    assert job.deployment.sinks == {"c": ("c/2",)}
    driven = run_job(tmp_path, job, ProcessSlots(), "kill slot=2 at=900ms")
    assert driven.problem is None
    assert [entry.what.slot for entry in driven.happened if isinstance(entry.what, SlotLost)] == [2]
    rows = list(rows_of(driven.directory.output, ["c/2"], "committed"))
    found = [
        (k, n) for b in rows for k, n in zip(b["key"].tolist(), b["count"].tolist(), strict=True)
    ]
    assert sorted(found) == [(k, n) for k in range(7) for n in range(1, len(range(k, 800, 7)) + 1)]
