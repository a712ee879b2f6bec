"""Who may read what a run leaves: its owner, whatever the umask, unless the run is shared."""

import os
import stat
import time
from typing import Any

import pytest

from snapline.batch import Batch
from snapline.core.messages import Message
from snapline.core.protocol import Options
from snapline.dataflow.deploy import deploy
from snapline.engine.job import Job, Settings
from snapline.errors import UsageError
from snapline.ids import ChannelId, TaskId
from snapline.journal.entry import COORDINATOR, Happened
from snapline.journal.happenings import JobFinished
from snapline.judge.tables import SystemTables
from snapline.protocols import PROTOCOLS
from snapline.rundir.directory import RunDirectory
from snapline.rundir.journal_file import JournalFile
from snapline.runtime.slot.process import SlotProcess, SlotSpec
from snapline.spark.generate import Piece, draft_of, write_piece
from snapline.storage.api import Extent, Life
from snapline.systems.harness.file_input import FileInput
from snapline.systems.harness.processes import Group
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params
from stored_inputs import write_ingress

ROWS = Batch.of(id=[1, 2], time=[0, 1])


@pytest.fixture(params=[0o000, 0o022, 0o077], ids="umask {0:03o}".format)
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def everything(top):
    """The permissions of a directory and of all that is in it; nothing is there under a draft's name."""
    paths = [top, *top.rglob("*")]
    assert not [path for path in paths if path.name.startswith(".")]
    return {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in paths}


def written(runs, **options):
    """A run directory with a file of every kind in it."""
    directory = RunDirectory.create(runs, "q12", "aligned", {}, **options)
    directory.store.put("snapshot/a/1", b"state")
    directory.trouble.slow(1, 1)
    log = directory.storage.logs.open(Life(TaskId("a/0"), 1, 1))
    log.append(Message(ChannelId("c"), 1, 1, ROWS, b"", None))
    log.sync()
    log.close()
    egress: Any = directory.outlet.open(Life(TaskId("out/0"), 1, 1), 0)
    egress.append(ROWS)
    egress.sync()
    directory.outlet.publish(1, {TaskId("out/0"): Extent(egress.file, 0, 2)})
    egress.close()
    journal = JournalFile(directory.path / "journal" / "driver-1.jsonl")
    journal.add(Happened(0, COORDINATOR, 1, JobFinished()))
    journal.close()
    directory.write("result.json", {})
    SystemTables(ROWS, {"out": ROWS}, None).save(directory.path)
    FileInput(directory.path / "system", ("bids",)).give("bids", ROWS)
    write_ingress(directory.path / "stored", [[ROWS]])
    program = Group(["sh", "-c", f"echo said; : > {directory.path}/by-it"], directory.path / "log")
    for _ in range(6_000):
        if program.ended() is not None:
            break
        time.sleep(0.01)
    program.kill()
    return directory.path


def test_a_run_is_its_owners_alone_whatever_the_umask(tmp_path, umask):
    assert everything(written(tmp_path / "runs")) == {(True, 0o700), (False, 0o600)}


def test_in_a_shared_run_the_umask_decides(tmp_path, umask):
    path = written(tmp_path / "runs", shared=True)
    assert everything(path) == {(True, 0o777 & ~umask), (False, 0o666 & ~umask)}


def test_a_slot_of_another_user_says_that_the_run_has_to_be_shared(tmp_path, monkeypatch):
    directory = RunDirectory.create(tmp_path, "q12", "aligned", {})
    spec = SlotSpec(("127.0.0.1", 1), str(directory.path), a_job(), 1.0, 1.0, 1.0)
    monkeypatch.setattr("os.access", lambda path, how: False)
    with pytest.raises(UsageError, match=r"may not write into .* --shared"):
        SlotProcess(spec, bytes(32))


def a_job():
    deployed = deploy(WORKLOADS["counting"].build(Params(1, 1, 10, 1_000)), 1)
    protocol = PROTOCOLS["aligned"]
    return Job("counting", deployed, protocol, Options(), protocol.guarantees[0], Settings())


@pytest.mark.parametrize("format", ["log", "parquet"])
def test_for_generated_input_the_umask_decides_unless_it_lies_in_a_private_place(
    tmp_path, umask, format
):
    params = Params(1, 1, 10, 1_000)
    nodes = WORKLOADS["counting"].build(params).graph.nodes.values()
    (source,) = [node.bound for node in nodes if node.bound is not None]
    private = RunDirectory.create(tmp_path, "q12", "aligned", {}).path
    os.chmod(tmp_path, 0o755)
    for place, expected in (
        (tmp_path / "input", {(True, 0o777 & ~umask), (False, 0o666 & ~umask)}),
        (private / "input", {(True, 0o700), (False, 0o600)}),
    ):
        with draft_of(place) as draft:
            (draft / "s").mkdir(0o700 if place.parent == private else 0o777)
            write_piece(source, Piece("s", 0, 0, 0, 10), draft, format)
        assert everything(place) == expected
