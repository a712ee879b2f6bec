"""Output as a judge reads it: where each row stands, and when it was written."""

import time

import numpy as np
import pytest

from snapline.batch import Batch
from snapline.ids import TaskId
from snapline.runtime.output_rows import POSITION_BITS, position_label, stamped_output
from snapline.runtime.rundir import RunDirectory
from snapline.storage.api import Extent, Life


@pytest.fixture
def directory(tmp_path):
    spec = {"flow": "sst", "protocol": "aligned", "origin_s": time.time() - 100}
    return RunDirectory.create(tmp_path, "sst", "aligned", spec)


def write(directory, task, epoch, start, stop):
    egress = directory.outlet.open(Life(TaskId(task), epoch, 1), start)
    for row in range(start, stop, 2):
        egress.append(Batch.of(n=np.arange(row, min(row + 2, stop))))
    egress.sync()
    return egress.file


def test_rows_are_numbered_per_task_and_stamped_with_the_time_of_their_run(directory):
    first = write(directory, "counts/0", 1, 0, 5)
    again = write(directory, "counts/0", 2, 3, 7)  # a rollback took rows 3 and 4 back
    other = write(directory, "counts/1", 1, 0, 2)
    directory.outlet.publish(
        1, {TaskId("counts/0"): Extent(first, 0, 3), TaskId("counts/1"): Extent(other, 0, 2)}
    )
    directory.outlet.publish(2, {TaskId("counts/0"): Extent(again, 3, 7)})
    public = stamped_output(directory, "counts", "committed")
    assert public["n"].tolist() == [*range(7), 0, 1]
    task_1 = 1 << POSITION_BITS
    assert public["position"].tolist() == [*range(7), task_1, task_1 + 1]
    assert [position_label(p) for p in public["position"][-3:].tolist()] == ["0:6", "1:0", "1:1"]
    assert np.all(abs(public["written"] - 100_000) < 60_000)


def test_all_that_was_written_has_a_position_of_its_own(directory):
    write(directory, "counts/0", 1, 0, 5)
    write(directory, "counts/0", 2, 3, 7)
    all_rows = stamped_output(directory, "counts", "uncommitted")
    assert all_rows["n"].tolist() == [0, 1, 2, 3, 4, 3, 4, 5, 6]
    assert all_rows["position"].tolist() == list(range(9))


def test_a_sink_that_wrote_nothing_has_no_rows(directory):
    write(directory, "counts/0", 1, 0, 5)
    assert len(stamped_output(directory, "late", "committed")) == 0
