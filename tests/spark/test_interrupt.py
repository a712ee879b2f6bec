"""Ctrl-C, twice, and `kill`: the command ends in good order, leaves nobody behind, and its run is resumed.

A terminal sends its signal to the whole process group, so does this test; a service manager's SIGTERM
reaches Java, too, which dies of it.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from run_helpers import assert_dead, commits, happenings, only, slot_processes
from spark_slots import eventually

from snapline.journal.happenings import JobInterrupted

pytestmark = pytest.mark.spark

SNAPLINE = [sys.executable, "-m", "snapline"]
RUN = ["run", "q12", "--rate", "500", "--duration", "10s", "--interval", "400ms", "--slots", "2"]


#: Runs the command line and interrupts it when Spark's context is just made, and not yet complete. From
#: then on py4j finds every connection reset, as it does if Java ends while an answer is on its way.
INTERRUPTED_IN_CONTEXT = """
import os, signal
from py4j import clientserver, protocol
from pyspark import SparkContext, accumulators
from snapline.cli.app import main

def reset(*_):
    raise protocol.Py4JNetworkError("Error while receiving", None, protocol.ERROR_ON_RECEIVE)

def interrupt(*_):
    os.kill(os.getpid(), signal.SIGINT)
    SparkContext._gateway.proc.wait(60)
    clientserver.ClientServerConnection.send_command = reset
    raise ConnectionError("Java has ended")

accumulators._start_update_server = interrupt
main()
"""


def committed(runs: Path) -> bool:
    return any(map(commits, happenings(runs, "*/journal/driver-*")))


def family(pid: int) -> Iterator[int]:
    """A process and all that descend from it."""
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # it has ended meanwhile
            for child in task.read_text().split():
                yield from family(int(child))


def interrupted(runs: Path, signals: list[int], *, group: bool) -> str:
    """Run the command, send the signals once a line is committed; what it said, and nobody is left."""
    command = subprocess.Popen(
        [*SNAPLINE, *RUN, "--runs", str(runs)],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with command:
        try:
            eventually(lambda: committed(runs) or command.poll() is not None, "a committed line")
            assert len(slot_processes(command.pid)) == 2
            pids = list(family(command.pid))
            for number in signals:
                (os.killpg if group else os.kill)(command.pid, number)
            _, said = command.communicate(timeout=120)
        finally:
            command.kill()
    assert command.returncode == 128 + signals[0], said
    assert_dead(pids)
    return said


def moments(command: subprocess.Popen[str]) -> dict[str, bool]:
    """Which moments of its start a command has reached, seen from its children and its files."""
    java = [pid for pid in family(command.pid) if b"pyspark-shell" in words_of(pid)]
    exists = Path(f"/proc/{command.pid}").exists()
    up = [pid for pid in java if exists and comm_of(pid) == "java" and listens(pid)]
    return {"launch": bool(java), "session": bool(up), "workers": bool(slot_processes(command.pid))}


def words_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def comm_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def listens(pid: int) -> bool:
    """Whether a process has a socket: Java has none before Python can talk to it."""
    try:
        return any("socket" in os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("launch", signal.SIGTERM),
        ("session", signal.SIGINT),
        pytest.param("launch", signal.SIGINT, marks=pytest.mark.slow),
        pytest.param("session", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("workers", signal.SIGINT, marks=pytest.mark.slow),
        pytest.param("workers", signal.SIGTERM, marks=pytest.mark.slow),
    ],
)
def test_a_signal_while_spark_starts_leaves_no_java_and_no_traceback(tmp_path, moment, number):
    command = subprocess.Popen(
        [*SNAPLINE, *RUN, "--runs", str(tmp_path / "runs")],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with command:
        try:
            eventually(lambda: moments(command)[moment], f"the moment of its {moment}")
            pids = list(family(command.pid))
            command.send_signal(number)
            out, said = command.communicate(timeout=120)
        finally:
            command.kill()
    assert (command.returncode, out) == (128 + number, ""), said
    assert len(said.splitlines()) == 2, said
    first, last = said.splitlines()
    assert first == "starting Spark ..."
    assert last.startswith("interrupted before the run" if moment != "workers" else "interrupted")
    assert_dead(pids)


def test_ctrl_c_while_spark_completes_its_context_prints_neither_py4js_log_nor_a_warning(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IN_CONTEXT, *RUN, "--runs", str(tmp_path / "runs")],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 128 + signal.SIGINT, ended.stderr
    said = ["starting Spark ...", "interrupted before the run had begun"]
    assert ended.stderr.splitlines() == said


@pytest.mark.parametrize(
    ("signals", "group"),
    [
        pytest.param([signal.SIGINT, signal.SIGINT], True, id="ctrl-c twice"),
        pytest.param([signal.SIGINT], True, id="ctrl-c", marks=pytest.mark.slow),
        pytest.param([signal.SIGTERM], False, id="kill", marks=pytest.mark.slow),
        pytest.param([signal.SIGTERM], True, id="kill of all", marks=pytest.mark.slow),
    ],
)
def test_an_interrupted_run_leaves_nobody_behind_and_is_resumed(tmp_path, signals, group):
    said = interrupted(tmp_path, signals, group=group)
    (directory,) = tmp_path.iterdir()
    again = f"snapline run --resume {directory.name} --runs {tmp_path}"
    assert said.splitlines()[-1] == f"interrupted; go on with: {again}"
    assert "Traceback" not in said
    assert only(happenings(directory / "journal", "driver-*"), JobInterrupted)
    assert not (directory / "result.json").exists()
    listed = subprocess.run(
        [*SNAPLINE, "runs", "list", "--runs", str(tmp_path)], capture_output=True, text=True
    )
    assert "not finished" in listed.stdout

    resumed = subprocess.run([*SNAPLINE, *again.split()[1:]], capture_output=True, text=True)
    assert resumed.returncode == 0, resumed.stderr
    assert "kept" in resumed.stdout
    assert (directory / "result.json").exists()
