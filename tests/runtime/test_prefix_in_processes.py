"""A run without an end is stopped, judged from its directory, goes on, and is judged again."""

from dataclasses import asdict, replace
from pathlib import Path

import pytest
from process_slots import PATIENT, ProcessSlots, committed, strike

import snapline as sl
from snapline.dataflow.graph import Dataflow
from snapline.engine.coordinator.holding import STOPPED
from snapline.errors import UsageError
from snapline.journal.entry import Happened
from snapline.journal.happenings import JobRunning, SlotLost
from snapline.judge.evidence import Question
from snapline.judge.run_directory import Judgement, judge
from snapline.rundir.directory import RunDirectory
from snapline.rundir.program import build_job, find_program
from snapline.rundir.spec import Spec
from snapline.runs.drive import drive
from snapline.runtime.driver.driver import INTERRUPTED, Driver

PATIENCE_S = 240
KILL = "kill slot=1 at=0ms"


class Run:
    """A run that is stopped at a committed line, as often as one likes."""

    def __init__(self, runs: Path, flow: str, protocol: str, own: Dataflow | None = None) -> None:
        usual = {"rate": 300, "size": "small", "interval_ms": 200, "endless": True}
        spec = Spec(flow, protocol=protocol, **usual)
        self.spec, self.own = spec, own
        self.directory = RunDirectory.create(runs, "x", protocol, asdict(spec))

    def drive(self, lines: int, *, fault: str = "", at_once: bool = False) -> Driver:
        """Go on for so many lines, and stop; a slot is killed at the first of them if there is a fault."""
        seen: list[Happened] = []

        def see(driver: Driver, entry: Happened) -> None:
            seen.append(entry)
            count = sum(committed(driver, each) for each in seen)
            if fault and count == 1 and committed(driver, entry):
                strike(driver, fault)
            struck = not fault or any(isinstance(each.what, SlotLost) for each in seen)
            if count >= lines and struck and committed(driver, entry):
                driver.loop.post(driver.interrupt if at_once else driver.stop)

        def be_patient(driver: Driver) -> None:
            driver.loop.after(PATIENCE_S, lambda: driver.finish(f"in vain for {PATIENCE_S} s"))

        job = build_job(self.spec, find_program(self.spec, self.own, self.directory))
        timeouts = replace(PATIENT, stop_s=PATIENCE_S)
        origin_s = self.directory.spec().get("origin_s")
        return drive(
            job,
            self.directory,
            ProcessSlots(),
            (),
            [see],
            timeouts=timeouts,
            prepare=be_patient,
            origin_s=origin_s,
        )

    def judge(self, *, reference: bool = False) -> Judgement:
        return judge(self.directory, Question(reference=reference), flow=self.own)


def test_a_stopped_run_in_which_a_slot_was_killed_is_judged_up_to_its_last_line(tmp_path):
    run = Run(tmp_path, "q12", "uncoordinated")
    run.directory.write("run.json", {**run.directory.spec(), "faults": KILL})
    assert run.drive(4, fault=KILL).problem == STOPPED
    found = run.judge()
    assert found.verdict.kept == "yes", found.verdict
    assert f"by which {found.records:,} records had been read" in found.verdict.because
    assert found.records == sum(found.rows.values())
    assert [strike.struck for strike in found.strikes] == [True]
    assert run.directory.result() is None  # nothing was written, so it can go on

    # Broken on purpose: the last manifest goes, and with it what it made public.
    manifests = run.directory.path / "output" / "manifests"
    last = max(manifests.glob("*.obj"), key=lambda path: int(path.stem))
    last.rename(tmp_path / "kept")
    assert run.judge().verdict.kept == "unknown"
    (tmp_path / "kept").rename(last)
    # And the same rows twice, as a publisher that forgets would make them public.
    doubled = manifests / f"{int(last.stem) + 1}.obj"
    doubled.write_bytes(last.read_bytes())
    assert run.judge().verdict.kept == "no"


def test_a_run_with_windows_is_judged_by_those_that_have_closed_and_again_when_it_went_on(tmp_path):
    run = Run(tmp_path, "sst", "aligned")
    assert run.drive(6).problem == STOPPED
    found = run.judge()
    assert found.verdict.kept == "yes", found.verdict
    assert found.judged.unjudged.events > 0  # those of windows that are open
    assert found.judged.counted > 0
    assert run.drive(2, at_once=True).problem == INTERRUPTED
    # With this protocol no message is ever on its way across a line, so a run that did not stop in good
    # order is judged, too.
    again = run.judge()
    assert again.verdict.kept == "yes", again.verdict
    assert again.records > found.records


def sums(flow: str) -> Dataflow:
    own = sl.Dataflow(flow)
    made = own.source(sl.generated(lambda n: {"key": n % 7, "value": n}, rate=300))
    made.key_by("key").tumbling("300ms").aggregate(total=("sum", "value")).sink("out")
    return own


@pytest.mark.slow
def test_a_flow_of_ones_own_is_held_against_runs_without_failures(tmp_path):
    run = Run(tmp_path, "sums", "unaligned", sums("sums"))
    assert run.drive(8).problem == STOPPED
    assert run.judge().verdict.kept == "unknown"  # nobody knows what it should put out
    found = run.judge(reference=True)
    assert found.verdict.kept == "yes", found.verdict
    assert "the run can go on" in found.verdict.because
    run.own = sums("others")
    with pytest.raises(UsageError, match="another dataflow"):
        run.judge(reference=True)


def test_a_run_without_lines_is_unknown_and_uncommitted_output_is_refused(tmp_path):
    run = Run(tmp_path, "q1", "none")

    def see(driver: Driver, entry: Happened) -> None:
        if isinstance(entry.what, JobRunning):
            driver.loop.post(driver.stop)

    job = build_job(run.spec, find_program(run.spec))
    stopped = drive(job, run.directory, ProcessSlots(), (), [see], timeouts=replace(PATIENT))
    assert stopped.problem == STOPPED
    verdict = run.judge().verdict
    assert (verdict.kept, verdict.because) == (
        "unknown",
        "none has no lines: nobody knows which records had been read",
    )
    with pytest.raises(UsageError, match="--uncommitted is for a run that is over"):
        judge(run.directory, Question(uncommitted=True))
