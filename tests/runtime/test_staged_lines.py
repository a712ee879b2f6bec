"""Runs whose input was staged: `verify` reads it, too, and a fork has a copy of its own. Without Spark."""

import random
import shutil
from dataclasses import replace

import numpy as np
import pytest
from lines_of_runs import Damaged, flipped, removed, truncated

from driver_in_process import PATIENT, SPEC, use_processes
from snapline.batch import Batch
from snapline.dataflow.feeds.frames import columns_feed
from snapline.dataflow.graph import Dataflow
from snapline.errors import RunDamaged
from snapline.rundir.directory import RunDirectory
from snapline.rundir.lines.kept import kept_lines
from snapline.rundir.lines.verify import verify
from snapline.rundir.stored_input import staged_place
from snapline.runs.run import create_run, fork, prepare, prepare_fork, resume
from snapline.storage.files.ingress import describe_ingress, write_segment
from snapline.storage.files.places import make_directory

RECORDS = 400
ROWS = [(n, n % 7) for n in range(RECORDS)]


def the_flow(scale=2):
    flow = Dataflow("staged")
    columns = {"time": "bigint", "n": "int", "price": f"decimal(9,{scale})"}
    feed = columns_feed(columns, lambda spark: None, rate=RECORDS // 2, of_session=False)
    flow.source(feed, name="bids").key_by("n").sink("all")
    return flow


def stage(directory):
    """What a Spark job does: half of the rows in each partition, in blocks."""
    place = staged_place(directory, "bids")
    make_directory(place)
    partitions = []
    for partition in range(2):
        n = np.arange(partition, RECORDS, 2)
        rows = Batch({"time": n, "n": n.astype(np.int32), "price": n % 7})
        blocks = [rows.slice(start, start + 60) for start in range(0, len(rows), 60)]
        partitions.append([write_segment(place, partition, 0, blocks)])
    describe_ingress(place, rows.schema, partitions)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that is over, and keeps some lines in the midst of its input."""
    runs, flow = tmp_path_factory.mktemp("runs"), the_flow()
    asked = {"flow": "staged", "slots": 2, "interval_ms": 150, "options": (("kept_lines", 6),)}
    with pytest.MonkeyPatch.context() as monkeypatch:
        use_processes(monkeypatch)
        directory = create_run(prepare(replace(SPEC, **asked), flow=flow, runs=runs))
        stage(directory)
        return resume(directory.name, flow=flow, runs=runs, timeouts=PATIENT)


def rows_of(run):
    batch = run.batch()
    return sorted(zip(batch["n"].tolist(), batch["price"].tolist(), strict=True))


def staged_files(directory):
    return sorted(file for file in verify(directory).files if file.startswith("input/"))


def test_verify_reads_every_file_of_the_staged_input(run):
    directory = run.directory
    assert rows_of(run) == ROWS
    assert verify(directory).damages == ()
    there = (directory.path / "input").rglob("*.*")
    files = staged_files(directory)
    assert files == sorted(str(path.relative_to(directory.path)) for path in there)
    assert len(files) == 3
    for file in files:
        path, rng = directory.path / file, random.Random(file)
        size = path.stat().st_size
        for damage in (removed(path), flipped(path, rng, size), truncated(path, rng, size)):
            with damage:
                [found] = verify(directory).damages
            assert found.file == file
            assert found.needed_for.startswith("input of bids (lines ")


def test_a_fork_reads_its_own_copy_of_the_staged_input(run, tmp_path, monkeypatch):
    use_processes(monkeypatch)
    origin = tmp_path / run.directory.name
    shutil.copytree(run.directory.path, origin)
    number = kept_lines(RunDirectory(origin))[0].number
    # The DataFrame has other types by now, which what was staged has not.
    prepared = prepare_fork(origin.name, number, flow=the_flow(scale=3), runs=tmp_path)
    forked = create_run(prepared)
    shutil.rmtree(origin)
    finished = resume(forked.name, flow=the_flow(), runs=tmp_path, timeouts=PATIENT)
    assert finished.rows["all"] == RECORDS
    assert rows_of(finished) == ROWS
    assert verify(forked).damages == ()
    assert len(staged_files(forked)) == 3
    assert forked.meanings == {"all": {"price": "decimal(9,2)"}}


def test_a_fork_carried_out_at_once_reads_its_copy_too(run, tmp_path, monkeypatch):
    use_processes(monkeypatch)
    runs = run.directory.path.parent
    number = kept_lines(run.directory)[0].number
    finished = fork(run.directory.name, number, flow=the_flow(), runs=runs, timeouts=PATIENT)
    assert finished.directory.path != run.directory.path
    assert rows_of(finished) == ROWS


def test_a_run_with_damaged_staged_input_is_not_forked(run):
    runs, number = run.directory.path.parent, kept_lines(run.directory)[0].number
    file = next(file for file in staged_files(run.directory) if file.endswith(".rows"))
    for at in (4, -4):  # in the checksum of the first block, and in the rows of the last one
        content = bytearray((run.directory.path / file).read_bytes())
        content[at] ^= 1
        refused = pytest.raises(RunDamaged, match=r"is damaged \(.*\.rows.* --verify' says")
        with Damaged(run.directory.path / file, bytes(content)), refused:
            prepare_fork(run.directory.name, number, flow=the_flow(), runs=runs)
