"""Streams that grow while slots read them, killed and idle; their chains are written by the test itself."""

import os
import shutil
import sys
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from process_slots import Driver, committed, public, run_job, strike
from pyspark import cloudpickle

import snapline as sl
from driver_in_process import PATIENT, SPEC, use_processes
from snapline.core.protocol import Options
from snapline.dataflow.deploy import deploy
from snapline.dataflow.feeds.frames import StreamFeed
from snapline.engine.job import Job, Settings
from snapline.journal.happenings import OutputPublished, SlotLost
from snapline.judge.run_directory import judge
from snapline.protocols import PROTOCOLS
from snapline.rundir.directory import RunDirectory
from snapline.rundir.lines.kept import kept_lines
from snapline.rundir.lines.verify import verify
from snapline.rundir.stored_input import staged_place
from snapline.runs.run import create_run, fork, prepare, prepare_fork, resume
from snapline.runs.sources import upkeep
from snapline.runs.sources.streams import make_stream
from snapline.runtime.launch.processes import ProcessSlots
from snapline.storage.streams.chain import StreamChain, read_manifests
from snapline.storage.streams.ingress import StreamIngress
from snapline.storage.streams.manifests import BUNDLE, Manifests
from snapline.storage.streams.upkeep import StreamUpkeep
from written_streams import add, made_stream

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the slots cannot import it
BATCHES = 6
PROTOCOL = "aligned"


def a_job(flow, protocol=PROTOCOL):
    return Job(
        flow.name,
        deploy(flow, 2, lean=True),
        PROTOCOLS[protocol],
        Options(interval_ms=150),
        PROTOCOLS[protocol].guarantees[0],
        Settings(linger_ms=2, batch_max_records=40),
    )


def batch_of(number):
    """The rows of a micro-batch: ten in each partition."""
    times = range(20 * number, 20 * number + 20)
    return [*times[::2]], [*times[1::2]]


@pytest.mark.parametrize("protocol", ["aligned", "uncoordinated"])
def test_every_record_of_a_growing_stream_comes_once_whoever_dies(tmp_path, protocol):
    """The next micro-batch comes when a line was committed, and a slot dies with every other one."""
    chain = made_stream(tmp_path / "stream")
    flow = sl.Dataflow("grows")
    flow.source(StreamIngress(chain.place), name="rows").key_by("n").sink("all")
    kills = []

    def see(driver, entry):
        if chain.sealed or not committed(driver, entry):
            return
        if chain.length == BATCHES:
            chain.seal()
            return
        add(chain, *batch_of(chain.length))
        if chain.length % 2 and driver.roster.running:
            kills.append(strike(driver, f"kill slot={chain.length // 2 % 2} at=0ms"))

    job = a_job(flow, protocol)
    driven = run_job(tmp_path, job, ProcessSlots(), on_event=see)
    assert driven.problem is None
    assert kills
    assert [entry for entry in driven.happened if isinstance(entry.what, SlotLost)]
    found = sorted(public(driven.directory, job)["all"]["n"].tolist())
    assert found == list(range(20 * BATCHES))


def test_input_that_all_kept_lines_have_passed_is_deleted_while_slots_die(tmp_path, monkeypatch):
    """There is more than one bundle of it. Rollbacks find all that they need."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    monkeypatch.setattr(upkeep, "EVERY_S", 0.05)
    chain = made_stream(tmp_path / "stream")
    for _ in range(BUNDLE):
        add(chain, [chain.length], [chain.length])
    flow = sl.Dataflow("deletes")
    flow.source(StreamIngress(chain.place), name="rows").key_by("n").sink("all")
    threads, kills, manifests = [], [], Manifests(chain.place)

    def see(driver, entry):
        if not threads:
            threads.append(upkeep.UpkeepThread([chain.place], driver, 0))
        if chain.sealed or not committed(driver, entry):
            return
        add(chain, [chain.length], [chain.length])
        if manifests.floor() > BUNDLE + 1 and len(kills) >= 2:
            chain.seal()
        elif manifests.floor() > BUNDLE / 2 and driver.roster.running and len(kills) < 2:
            kills.append(strike(driver, f"kill slot={len(kills)} at=0ms"))

    job = a_job(flow)
    driven = run_job(tmp_path, job, ProcessSlots(), on_event=see)
    threads[0].stop()
    assert driven.problem is None
    assert [entry for entry in driven.happened if isinstance(entry.what, SlotLost)]
    found = sorted(public(driven.directory, job)["all"]["n"].tolist())
    assert found == [n for n in range(chain.length - 1) for _ in range(2)]
    assert not (chain.place / "batches" / f"1-{BUNDLE}").exists()
    assert not manifests.own.path(f"1-{BUNDLE}").exists()


class Conductor:
    """Lets a busy stream go on until windows are public, although the other one says nothing."""

    def __init__(self, busy: StreamChain, quiet: StreamChain) -> None:
        self.busy, self.quiet = busy, quiet
        add(busy, [1_000, 2_000, 9_000], [1_500, 8_500])

    def see(self, driver: Driver, entry) -> None:
        if not isinstance(entry.what, OutputPublished) or self.busy.sealed:
            return
        if any(stop > start for start, stop in entry.what.rows.values()):
            add(self.quiet, [1_700, 9_500], [12_000])
            for chain in (self.quiet, self.busy):
                chain.seal()


def test_an_idle_stream_holds_nobody_back_and_what_comes_behind_the_others_is_late(tmp_path):
    """A window between the two streams and their union has to pass the idleness on."""
    busy, quiet = made_stream(tmp_path / "busy"), made_stream(tmp_path / "quiet", idle_ms=100)
    flow = sl.Dataflow("idle")
    one = flow.source(StreamIngress(busy.place), name="busy")
    other = flow.source(StreamIngress(quiet.place), name="quiet").key_by("n").map(same)
    one.union(other).key_by("n").tumbling("1s").count().sink("counts")
    conductor = Conductor(busy, quiet)
    job = a_job(flow)
    driven = run_job(tmp_path, job, ProcessSlots(), on_event=conductor.see)
    assert driven.problem is None
    counts = public(driven.directory, job)["counts"]
    windows = Counter(counts["window"].tolist())
    assert windows[1_000] == 2, "and not 3: the row of the quiet stream came too late"
    assert windows[9_000] == 2, "this one did not"
    assert windows[12_000] == 1


def same(batch):
    return batch


# Lines, and forks.


def a_flow():
    flow = sl.Dataflow("streamed")
    columns = {"n": "bigint", "time": "bigint"}
    feed = StreamFeed(columns, lambda spark: None, "time", 0, None, False, 5_000)
    flow.source(feed, name="rows").key_by("n").sink("all")
    return flow


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that is over, over a stream that has come to its end."""
    runs, flow = tmp_path_factory.mktemp("runs"), a_flow()
    asked = {"flow": "streamed", "slots": 2, "interval_ms": 150, "reference": True}
    with pytest.MonkeyPatch.context() as monkeypatch:
        use_processes(monkeypatch)
        monkeypatch.setattr("snapline.runs.sources.staging.check_streams", lambda *_: None)
        directory = create_run(prepare(replace(SPEC, **asked), flow=flow, runs=runs))
        place = staged_place(directory, "rows")
        (feed,) = (node.ingress for node in flow.graph.nodes.values() if node.ingress is not None)
        make_stream(feed, place, 2)
        chain = StreamChain(place)
        for number in range(BATCHES):
            add(chain, *batch_of(number))
        chain.seal()
        return resume(directory.name, flow=flow, runs=runs, timeouts=PATIENT)


def numbers(run):
    return sorted(run.batch()["n"].tolist())


def test_a_run_over_a_sealed_stream_is_judged_by_what_the_chain_holds(run):
    assert run.verdict.kept == "yes", run.verdict
    assert numbers(run) == list(range(20 * BATCHES))


def test_verify_misses_every_file_of_a_stream_that_is_gone(run):
    directory = run.directory
    files = [file for file in verify(directory).files if file.startswith("input/")]
    assert verify(directory).damages == ()
    there = (directory.path / "input").rglob("*.*")
    assert sorted(files) == sorted(str(path.relative_to(directory.path)) for path in there)
    assert len(files) == 1 + (BATCHES + 1) + 2 * BATCHES
    for file in files:
        path = directory.path / file
        content = path.read_bytes()
        for damaged in (None, bytes([content[0] ^ 1]) + content[1:]):
            path.unlink() if damaged is None else path.write_bytes(damaged)
            assert file in {damage.file for damage in verify(directory).damages}, file
            path.write_bytes(content)
    assert verify(directory).damages == ()


def test_a_fork_has_the_stream_to_its_end_and_a_stream_that_goes_on_is_not_forked(run, monkeypatch):
    use_processes(monkeypatch)
    runs, name = run.directory.path.parent, run.directory.name
    line = kept_lines(run.directory)[-1].number
    again = fork(name, line, flow=a_flow(), runs=runs, timeouts=PATIENT)
    assert numbers(again) == numbers(run)
    (seal,) = (m for m in read_manifests(staged_place(run.directory, "rows")) if m.sealed)
    path = staged_place(run.directory, "rows") / "manifests" / f"{seal.number}.obj"
    monkeypatch.setattr("snapline.runs.sources.staging.check_streams", lambda *_: None)
    refused = partial(prepare_fork, name, line, flow=a_flow(), runs=runs)
    content = path.read_bytes()
    path.unlink()
    try:
        with pytest.raises(sl.UsageError, match="the stream has no end"):
            refused()
    finally:
        path.write_bytes(content)


def test_a_run_whose_input_was_deleted_is_whole_can_be_forked_and_is_not_called_right(
    run, tmp_path, monkeypatch
):
    use_processes(monkeypatch)
    directory = RunDirectory(tmp_path / run.directory.name)
    shutil.copytree(run.directory.path, directory.path)
    assert judge(directory, flow=a_flow()).verdict.kept == "yes"
    place = staged_place(directory, "rows")
    upkeep = StreamUpkeep(place)
    upkeep.raise_floor(read_manifests(place)[3].before.offsets, 1 << 60)
    upkeep.tidy()
    assert verify(directory).damages == ()
    files = [file for file in verify(directory).files if file.startswith("input/")]
    assert len(files) == 1 + 1 + (BATCHES + 1 - 3) + 2 * (BATCHES - 3)
    verdict = judge(directory, flow=a_flow()).verdict
    assert verdict.kept == "unknown"
    assert verdict.because.startswith(
        "the input of the stream 'rows' before micro-batch 3 was deleted"
    )
    line = kept_lines(directory)[-1].number
    again = fork(directory.name, line, flow=a_flow(), runs=tmp_path, timeouts=PATIENT)
    assert numbers(again) == numbers(run)
    assert again.verdict.kept == "unknown"
    (floor,) = (place / "floors").iterdir()
    floor.unlink()
    assert "1.obj" in {Path(damage.file).name for damage in verify(directory).damages}
