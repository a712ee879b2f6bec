"""A run that keeps its output for a while only: real processes, a kill, two stops, and nothing is lost."""

from process_slots import a_directory, a_job, committed, lost, strike
from test_stop_in_processes import driven

from held_input import Hold
from snapline.engine.coordinator.holding import STOPPED
from snapline.storage.api import rows_of
from snapline.storage.files.outlet import SEGMENTS
from snapline.storage.files.rows import lives_in
from snapline.workload.common.base import Params
from snapline.workload.nexmark import model

RETAIN_MS = 1_200
PARAMS = Params(1, 2, 900, 3_000)


class Deletions:
    """Waits until manifests were deleted; then it kills a slot if it has to, waits again, and stops."""

    def __init__(self, directory, kill):
        self.output, self.kill = directory.output, kill
        self.wanted = self.output.floor().place + 3
        self.stopping = False

    def __call__(self, driver, entry):
        if lost(driver, entry):
            self.wanted = self.output.published() + 1  # all that was public by now is to go
        if self.stopping or not committed(driver, entry):
            return
        if self.output.floor().place >= self.wanted:
            if self.kill:
                self.kill, self.wanted = False, 1 << 30
                strike(driver, "kill slot=1 at=0ms")
            else:
                self.stopping = True
                driver.loop.post(driver.stop)


def check_rows(job, directory, public):
    """What can be read of each sink task is the end of what it has to put out; returns the floor."""
    floor = directory.output.floor()
    bids = model.bids(PARAMS)
    [tasks] = job.deployment.sinks.values()
    for partition, task in enumerate(tasks):
        found = [
            n for b in rows_of(directory.output, [task], "committed") for n in b["id"].tolist()
        ]
        expected = bids.read(partition, 0, PARAMS.records)["id"].tolist()
        first = floor.rows[task]
        assert found == expected[first : public[task]]
        assert first
    return floor


def test_rows_are_deleted_while_slots_are_killed_and_the_run_is_stopped_and_resumed(tmp_path):
    hold = Hold(tmp_path)
    job = hold.held(a_job("q1", "aligned", PARAMS))
    directory = a_directory(tmp_path, job, None, RETAIN_MS)
    begun = driven(job, directory, Deletions(directory, kill=True))
    assert begun.problem == STOPPED
    first = check_rows(job, directory, begun.engine.decider.public)
    assert all(life.epoch > 1 for life in lives_in(directory.path / "output"))
    resumed = driven(job, directory, Deletions(directory, kill=False), origin_s=begun.origin_s)
    assert resumed.problem == STOPPED
    second = check_rows(job, directory, resumed.engine.decider.public)
    assert second.place > first.place
    [tasks] = job.deployment.sinks.values()
    files = [path for path in (directory.path / "output").rglob("*") if path.is_file()]
    left = directory.output.published() - directory.output.floor().place
    assert len(files) <= 1 + left + 3 * len(tasks) * (SEGMENTS + 2)
