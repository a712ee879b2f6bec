"""Two drivers at one run: who is replaced while it stands still wakes up and changes nothing."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from process_slots import run_processes

import driver_in_process
from driver_in_process import drive
from held_input import Hold
from snapline.errors import RunDamaged, UsageError
from snapline.journal.happenings import OutputPublished
from snapline.rundir.directory import RunDirectory
from snapline.runs.run import prepare_resume

PATIENCE_S = 240


def eventually(what):
    until_s = time.monotonic() + PATIENCE_S
    while not (found := what()):
        assert time.monotonic() < until_s, "in vain"
        time.sleep(0.05)
    return found


@pytest.fixture
def hold(tmp_path):
    """Nobody's input ends before it is let go."""
    return Hold(tmp_path)


@pytest.fixture
def first(tmp_path, hold):
    """A driver in a process of its own, which has committed a line, and has more input to read."""
    program = [sys.executable, driver_in_process.__file__, str(tmp_path)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, start_new_session=True) as it:
        try:
            third = "*/store/decision/00000003.obj"
            eventually(lambda: [*tmp_path.glob(third)] or it.poll() is not None)
            assert [*tmp_path.glob(third)], "it has ended before"
            yield it
        finally:
            with suppress(ProcessLookupError):
                os.killpg(
                    it.pid, signal.SIGKILL
                )  # the session that was started here, and its slots


def files(directory: Path) -> dict[str, bytes]:
    """What a run says of itself."""
    return {name: (directory / name).read_bytes() for name in ("run.json", "result.json")}


def test_a_driver_that_was_stopped_replaced_and_woken_leaves_the_result_of_the_winner(
    tmp_path, hold, first
):
    with pytest.raises(UsageError, match=f"is being run by process {first.pid} on "):
        prepare_resume("last", runs=tmp_path)
    os.kill(first.pid, signal.SIGSTOP)
    hold.let_go()
    finished = drive(tmp_path, resume="last")
    assert finished.verdict.kept == "yes"
    directory = finished.directory
    before = files(directory.path)
    os.kill(first.pid, signal.SIGCONT)
    said, _ = first.communicate(timeout=PATIENCE_S)
    assert said == f"Deposed: another driver has taken {directory.name} over: it goes on there\n"
    assert files(directory.path) == before
    assert directory.result()["kept"] == "yes"
    with pytest.raises(UsageError, match="is over, and its promise was kept: "):
        drive(tmp_path, resume="last")
    assert files(directory.path) == before
    assert RunDirectory.open(tmp_path, "last").result() is not None


def test_what_cannot_heal_ends_a_run_with_the_name_of_the_file(tmp_path):
    """Somebody has put something in the place of the next manifest."""
    obstacle = []

    def obstruct(driver, entry):
        if isinstance(entry.what, OutputPublished) and not obstacle:
            place = entry.what.number + 1
            obstacle.append(driver.directory.path / "output" / "manifests" / f"{place}.obj")
            obstacle[0].mkdir()

    with pytest.raises(RunDamaged) as told:
        run_processes(tmp_path, "aligned", slots=1, on_event=obstruct)
    assert str(obstacle[0]) in str(told.value)
