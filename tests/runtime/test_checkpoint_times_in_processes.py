"""Real slots that compress what they keep and choose when to checkpoint; one of them is killed."""

from dataclasses import replace

import pytest
from process_slots import a_job, committed, lost, public, run_job, strike

from snapline.core.effects import Snapshot
from snapline.core.events import Progressed
from snapline.engine.job import Settings
from snapline.journal.entry import Handled
from snapline.judge.history import journal_entries
from snapline.runtime.launch.processes import ProcessSlots
from snapline.storage.codec import decode_message
from snapline.storage.files.frames import walk
from snapline.storage.files.log import seed_of
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params


@pytest.mark.parametrize("protocol", ["uncoordinated", "hmnr"])
def test_a_kill_is_survived_with_compressed_files_and_checkpoints_by_count(tmp_path, protocol):
    params = Params(1, 2, 20_000, 3_000)
    job = a_job("q12", protocol, params)
    job = replace(
        job,
        settings=Settings(linger_ms=50, compress=True),
        options=replace(
            job.options, every_records=2_000, at_window_close=True, intervals_ms=(("bids", 150),)
        ),
    )
    done = {"kills": 0, "lines": 0}

    def kill(driver, entry):
        if committed(driver, entry):
            done["lines"] += 1
            if done["kills"] == 0 and done["lines"] == 3:
                done["kills"] += 1
                strike(driver, "kill slot=1 at=0ms")

    def over(driver, entry):
        return done["kills"] > 0 and lost(driver, entry)

    driven = run_job(tmp_path, job, ProcessSlots(), on_event=kill, until=over)
    assert driven.problem is None
    outputs = public(driven.directory, job)
    assert list(WORKLOADS["q12"].judge(params, outputs, {}, job.guarantee)) == []
    assert done["kills"] == 1

    path = driven.directory.path
    snapshots = list(path.glob("store/snapshot/*/*.obj"))
    assert snapshots
    assert {file.read_bytes()[:4] for file in snapshots} == {b"SNZ1"}
    logged = [
        (len(payload), decode_message(payload).batch.nbytes)
        for segment in path.glob("logs/*.log")
        for payload in walk(segment, seed_of(segment))
    ]
    assert any(stored * 2 < whole for stored, whole in logged)
    assert taken_by_progress(driven.directory) > 0


def taken_by_progress(directory):
    taken = 0
    for file in (directory.path / "journal").glob("slot-*.jsonl"):
        for entry in journal_entries(directory, file):
            if isinstance(entry, Handled) and isinstance(entry.event, Progressed):
                taken += any(isinstance(effect, Snapshot) for effect in entry.effects)
    return taken
