"""An input that does not answer: its slot takes everything else meanwhile, and commits lines."""

import sys
import time
from pathlib import Path

import numpy as np
from process_slots import committed, run_job
from pyspark import cloudpickle

import snapline as sl
from snapline.batch import Batch
from snapline.core.protocol import Options
from snapline.dataflow.deploy import deploy
from snapline.engine.job import Job, Settings
from snapline.ids import task_id
from snapline.journal.happenings import SlotLost
from snapline.protocols import PROTOCOLS
from snapline.runtime.launch.processes import ProcessSlots
from snapline.storage.api import rows_of
from snapline.storage.blocks import BlockIngress, StoredBlock

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the slots cannot import it
BLOCK, BLOCKS = 100, 4


class GatedInput(BlockIngress):
    """Two partitions of four blocks; from the second block on nothing can be read without the gate."""

    def __init__(self, gate: Path) -> None:
        self.gate = gate
        blocks = [[StoredBlock.of(self.block(p, n)) for n in range(BLOCKS)] for p in range(2)]
        super().__init__({"time": "int64", "number": "int64"}, blocks)

    def block(self, partition, number):
        offsets = np.arange(number * BLOCK, (number + 1) * BLOCK)
        return Batch.of(time=offsets // 10, number=offsets * 2 + partition)

    def load(self, partition, block):
        while block > 0 and not self.gate.exists():
            time.sleep(0.01)
        return self.block(partition, block)


def numbers(n):
    return {"number": n}


def test_a_slot_goes_on_while_an_input_does_not_answer(tmp_path):
    gate = tmp_path / "gate"
    flow = sl.Dataflow("mine")
    flow.source(GatedInput(gate), name="slow").sink("s")
    flow.source(sl.generated(numbers, rate=400), name="numbers").sink("c")
    job = Job(
        "mine",
        deploy(flow.bind(2, 1_500), 2, lean=True),
        PROTOCOLS["aligned"],
        Options(interval_ms=100),
        PROTOCOLS["aligned"].guarantees[0],
        Settings(linger_ms=2, batch_max_records=40),
    )
    lines = []

    def see(driver, entry):
        lines.append(entry) if committed(driver, entry) else None
        if len(lines) == 3:  # none can be committed while a slot waits
            gate.touch()

    driven = run_job(tmp_path, job, ProcessSlots(), on_event=see)
    assert driven.problem is None
    assert not [entry for entry in driven.happened if isinstance(entry.what, SlotLost)]
    for sink, count in (("s", 2 * BLOCK * BLOCKS), ("c", 600)):
        tasks = [task_id(sink, n) for n in (0, 1)]
        rows = rows_of(driven.directory.output, tasks, "committed")
        assert sorted(np.concatenate([b["number"] for b in rows]).tolist()) == list(range(count))
