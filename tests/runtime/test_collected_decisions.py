"""Old decisions of a real run are deleted, through kills at every step, and their numbers stay refused."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from collected_run import PARAMS, STOPPED, the_job
from process_slots import a_directory, public

from held_input import Hold
from snapline.engine.coordinator.ledger import newest_decision
from snapline.journal.entry import Happened
from snapline.journal.happenings import LineDecided
from snapline.judge.history import driver_entries
from snapline.workload import WORKLOADS

SCRIPT = Path(__file__).with_name("collected_run.py")
SLOW = pytest.mark.slow
PATIENCE_S = 240
MOMENTS = ["anchor before", "anchor after", "delete before", "delete after"]


class Scene:
    """A run that several drivers go on with, one after the other."""

    def __init__(self, tmp_path, protocol):
        self.place, self.protocol = tmp_path, protocol
        self.job = the_job(protocol, Hold(tmp_path))
        self.directory = a_directory(tmp_path / "runs", self.job, None)

    def begin(self, moment):
        support = os.pathsep.join([str(SCRIPT.parents[1] / "support"), *sys.path])
        command = [str(SCRIPT), str(self.directory.path), str(self.place), self.protocol, moment]
        return subprocess.Popen(
            [sys.executable, *command],
            env={**os.environ, "PYTHONPATH": support},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def go_on(self, moment):
        """Let a driver go on with the run until its moment has come."""
        with self.begin(moment) as driver:
            _, said = driver.communicate(timeout=PATIENCE_S)
        assert driver.returncode == (0 if moment == "never" else -signal.SIGKILL), (moment, said)

    def has(self, number):
        return (self.directory.path / "store" / "decision" / f"{number:08d}.obj").exists()

    def acted_on(self, number):
        """How many drivers took a decision for theirs, and acted on it."""
        entries, _ = driver_entries(self.directory)
        found = [e.what for e in entries if isinstance(e, Happened)]
        return sum(isinstance(what, LineDecided) and what.number == number for what in found)

    def check(self):
        """The output is right, and of the ledger little is left."""
        last = newest_decision(self.directory.files, self.directory.identity)
        assert last.anchor.number > 1
        assert sum(map(self.has, range(1, last.number))) < last.number - 1
        outputs = public(self.directory, self.job)
        assert list(WORKLOADS["q12"].judge(PARAMS, outputs, {}, self.job.guarantee)) == []


@pytest.mark.parametrize(
    ("protocol", "moments"),
    [
        ("uncoordinated", ["anchor after", "delete after"]),
        *(pytest.param(p, MOMENTS, marks=SLOW) for p in ("uncoordinated", "aligned")),
    ],
)
def test_drivers_killed_while_they_collect_leave_a_run_that_goes_on(tmp_path, protocol, moments):
    scene = Scene(tmp_path, protocol)
    for moment in [*moments, "never"]:
        scene.go_on(moment)
    scene.check()


def stopped_at(place, driver):
    """The number of the decision at which a driver stands still, once it does."""
    until_s = time.monotonic() + PATIENCE_S
    file = place / STOPPED
    while not (file.exists() and file.read_text()):
        assert time.monotonic() < until_s
        assert driver.poll() is None, driver.communicate()
        time.sleep(0.05)
    return int(file.read_text())


@pytest.mark.parametrize(
    ("protocol", "moment"), [("uncoordinated", "stop 7"), ("aligned", "stop epoch")]
)
def test_a_driver_that_stood_still_beyond_all_that_is_kept_changes_nothing(
    tmp_path, protocol, moment
):
    """It wins a number that its successor has used and deleted, and is deposed before it acts on it.

    Decision 7 publishes rows, so the manifests of its successor would stop it, too. A decision that
    begins an epoch publishes nothing: there its second look at the ledger is all that stops it.
    """
    scene = Scene(tmp_path, protocol)
    with scene.begin(moment) as still:
        try:
            number = stopped_at(tmp_path, still)
            scene.go_on(f"gone {number}")
            before = newest_decision(scene.directory.files, scene.directory.identity)
            assert not scene.has(number)
            os.kill(still.pid, signal.SIGCONT)
            _, said = still.communicate(timeout=PATIENCE_S)
            assert "another driver has taken" in said
            assert scene.has(number)  # it had won the number, and found out what that is worth
            assert newest_decision(scene.directory.files, scene.directory.identity) == before
            assert scene.acted_on(number) == 1  # that was its successor
        finally:
            with suppress(ProcessLookupError):
                os.killpg(still.pid, signal.SIGKILL)
    scene.go_on("never")
    scene.check()
