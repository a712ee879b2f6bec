"""A run stops with a last line, is resumed, and loses and doubles nothing: real processes, real kills."""

from dataclasses import replace
from pathlib import Path

import pytest
from process_slots import (
    PATIENT,
    ProcessSlots,
    a_directory,
    a_job,
    committed,
    processes_of,
    public,
    strike,
)

from held_input import Hold
from snapline.engine.coordinator.holding import STOPPED
from snapline.engine.job import Job
from snapline.journal.entry import Happened
from snapline.journal.happenings import JobStopping, JobSuspended, SlotLost
from snapline.rundir.directory import RunDirectory
from snapline.runs.drive import Observer, drive
from snapline.runtime.driver.driver import INTERRUPTED, Driver
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params

PATIENCE_S = 240


def driven(job: Job, directory: RunDirectory, see: Observer, **given: float) -> Driver:
    """Drive a job, or go on with it, until it ends or stops; it fails if it takes for ever."""

    def be_patient(driver: Driver) -> None:
        driver.loop.after(PATIENCE_S, lambda: driver.finish(f"in vain for {PATIENCE_S} s"))

    launcher = ProcessSlots()
    timeouts = replace(PATIENT, stop_s=given.pop("stop_s", PATIENCE_S))
    driver = drive(
        job, directory, launcher, (), [see], timeouts=timeouts, prepare=be_patient, **given
    )
    assert all(process.poll() is not None for process in processes_of(driver).values())
    return driver


class Stopper:
    """Stops a run at its first line; if asked to, kills a slot as soon as the run stops."""

    def __init__(self, faults: str = "", *, twice: bool = False) -> None:
        self.faults = faults
        self.twice = twice
        self.happened: list[Happened] = []

    def __call__(self, driver: Driver, entry: Happened) -> None:
        self.happened.append(entry)
        if committed(driver, entry) and not self.saw(JobStopping):
            driver.loop.post(driver.stop)
        if isinstance(entry.what, JobStopping):
            if self.faults:
                strike(driver, self.faults)
            if self.twice:
                driver.loop.post(driver.interrupt)

    def saw(self, kind: type) -> list[Happened]:
        return [entry for entry in self.happened if isinstance(entry.what, kind)]


def a_run(tmp_path: Path, protocol: str, workload: str, publish_lag: int = 0):
    params = Params(1, 2, 900, 3_000)
    hold = Hold(tmp_path)  # its input does not end before it has stopped
    job = hold.held(a_job(workload, protocol, params, publish_lag))
    return params, job, a_directory(tmp_path, job, None), hold


@pytest.mark.parametrize(
    ("protocol", "workload", "lag"),
    [("aligned", "q3", 1), ("uncoordinated", "q12", 0), ("aligned-cyclic", "reachability", 0)],
)
def test_a_slot_dies_while_the_run_stops_and_the_resumed_run_is_right(
    tmp_path, protocol, workload, lag
):
    params, job, directory, hold = a_run(tmp_path, protocol, workload, lag)
    stopper = Stopper("kill slot=1 at=0ms")
    stopped = driven(job, directory, stopper)
    assert stopped.problem == STOPPED
    assert [entry.what.slot for entry in stopper.saw(SlotLost)] == [1]
    [last] = stopper.saw(JobSuspended)
    assert last.what.line == stopped.engine.decider.number
    assert not stopped.engine.decider.held
    assert directory.result() is None  # it is not over, so nothing is said of it
    hold.let_go()
    finished = driven(job, directory, lambda *_: None, origin_s=stopped.origin_s)
    assert finished.problem is None
    outputs = public(directory, job)
    assert not WORKLOADS[workload].judge(params, outputs, {}, job.guarantee)


def test_a_second_request_and_a_limit_end_a_stop_at_once_and_it_is_resumed_all_the_same(tmp_path):
    params, job, directory, hold = a_run(tmp_path, "aligned", "q12")
    twice = driven(job, directory, Stopper(twice=True))
    at_limit = driven(job, directory, Stopper(), origin_s=twice.origin_s, stop_s=0)
    assert [twice.problem, at_limit.problem] == [INTERRUPTED, INTERRUPTED]
    hold.let_go()
    assert driven(job, directory, lambda *_: None, origin_s=twice.origin_s).problem is None
    assert not WORKLOADS["q12"].judge(params, public(directory, job), {}, job.guarantee)
