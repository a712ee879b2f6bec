"""A disk that takes nothing more: nothing wrong is published, and the run goes on when there is room."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from process_slots import committed, lost, run_processes

SCRIPT = Path(__file__).with_name("full_disk_run.py")
#: a user may mount what he likes in a namespace of his own, on machines that allow it
ON_A_SMALL_DISK = 'mount -t tmpfs -o size=8m tmpfs "$1" && shift && exec "$@"'
NAMESPACE = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", ON_A_SMALL_DISK, "sh"]


def run_on_a_small_disk(place: Path, *command: str) -> subprocess.CompletedProcess[str]:
    helpers = {"PYTHONPATH": str(Path(__file__).parents[1] / "support")}
    return subprocess.run(
        [*NAMESPACE, str(place), *command],
        env={**os.environ, **helpers},
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.fixture
def small_disk(tmp_path):
    """Where a small disk can be mounted."""
    try:
        possible = run_on_a_small_disk(tmp_path, "true").returncode == 0
    except FileNotFoundError:
        possible = False
    if not possible:
        pytest.skip("this machine lets nobody but root mount a file system")
    return tmp_path


def run_with_full_disk(place: Path, protocol: str, full_s: float) -> dict:
    run = run_on_a_small_disk(place, sys.executable, str(SCRIPT), str(place), protocol, str(full_s))
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize(
    "protocol", [pytest.param("aligned", marks=pytest.mark.slow), "uncoordinated"]
)
def test_a_disk_that_is_full_for_a_while_delays_the_run_and_breaks_nothing(small_disk, protocol):
    told = run_with_full_disk(small_disk, protocol, 1.5)
    assert (told["problem"], told["kinds"]) == (None, [])
    assert told["commits"]["before"] == 3
    assert told["commits"]["full"] == 0, "nothing counts that could not be stored"
    assert told["commits"]["after"] > 0
    assert told["complaints"]
    assert all("No space left on device" in line for line in told["complaints"])


@pytest.mark.slow
def test_while_a_disk_stays_full_the_run_waits_and_nothing_wrong_is_public(small_disk):
    told = run_with_full_disk(small_disk, "aligned", float("inf"))
    assert told["problem"] == "nobody made room"
    assert told["kinds"] == ["missing"]
    assert told["rows"] > 0
    assert told["commits"]["full"] == 0
    assert all("No space left on device" in line for line in told["complaints"])


@pytest.mark.parametrize(
    "protocol", [pytest.param("aligned", marks=pytest.mark.slow), "uncoordinated"]
)
def test_slots_that_can_write_nothing_more_end_and_others_go_on_in_their_place(tmp_path, protocol):
    """The same on any machine: the kernel lets these two processes make no file larger."""
    limited: list[int] = []
    commits = 0

    def forbid_writing(driver, entry):
        nonlocal commits
        commits += committed(driver, entry)
        if commits == 3 and not limited:
            limited.extend(member.hello.pid for member in driver.roster.members.values())
            for pid in limited:
                hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))

    outcome = run_processes(tmp_path, protocol, on_event=forbid_writing, until=lost)
    assert (outcome.problem, outcome.problems) == (None, [])
    assert sorted(outcome.lost) == [0, 1]
    assert len(outcome.complaints) == 2
    assert all("File too large" in line for line in outcome.complaints)
