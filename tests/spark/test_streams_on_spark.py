"""Streams on a real Spark: the query and a slot die at the same moment, and every row comes once."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from run_helpers import slot_processes

import snapline as sl
from snapline.journal.happenings import JobRunning, OutputPublished
from snapline.rundir.directory import RunDirectory
from snapline.rundir.lines.verify import verify
from snapline.rundir.stored_input import staged_place
from snapline.runs.sources import streams, upkeep
from snapline.storage.streams.chain import StreamChain, read_manifests
from snapline.storage.streams.manifests import Manifests

pytestmark = pytest.mark.spark

FILES, ROWS = 4, 50
SCHEMA = "bidder int, price bigint, time bigint"


def put(folder: Path, number: int, rows) -> None:
    """One file more for a stream of files; it appears as a whole."""
    folder.mkdir(exist_ok=True)
    draft = folder / f".{number}"
    lines = [json.dumps({"bidder": n % 5, "price": n, "time": 10_000 + n * 20}) for n in rows]
    draft.write_text("\n".join(lines))
    draft.rename(folder / f"{number}.json")


def fill(folder: Path) -> None:
    for number in range(FILES):
        put(folder, number, range(number * ROWS, (number + 1) * ROWS))


def bids(spark, folder: Path, schema=SCHEMA):
    """The files of a folder, one in each micro-batch."""
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.json(f"file://{folder}")


def flow_of(frame, **reading) -> sl.Dataflow:
    flow = sl.Dataflow("streamed")
    rows = flow.source(sl.stream(frame, **reading), name="bids")
    rows.sink("all")
    rows.key_by("bidder").tumbling("1s").count().sink("counts")
    return flow


def prices(run) -> list[int]:
    return sorted(row.price for row in run.output("all").collect())


class Murderer:
    """Ends the query of a stream, and all slots with it, at some steps of its micro-batches, each once."""

    def __init__(self, steps) -> None:
        self.steps = list(steps)
        self.add = StreamChain.add
        self.running = threading.Event()

    def event(self, happened) -> None:
        if isinstance(happened.what, JobRunning):
            self.running.set()

    def second(self, second) -> None:
        pass

    def __call__(self, chain, batch, query, folder, segments):
        if (batch, "before") in self.steps:
            self.strike(batch, "before")
        added = self.add(chain, batch, query, folder, segments)
        if (batch, "after") in self.steps:
            self.strike(batch, "after")
        return added

    def strike(self, batch, step) -> None:
        assert self.running.wait(240)
        self.running.clear()
        self.steps.remove((batch, step))
        slots = slot_processes(os.getpid())
        assert len(slots) >= 2
        for pid in slots:
            os.kill(pid, signal.SIGKILL)
        raise RuntimeError(f"killed {step} the manifest of micro-batch {batch}")


def test_every_row_comes_once_although_query_and_slot_die_at_every_step(
    spark, tmp_path, monkeypatch
):
    """Before a manifest and after it, which Spark then does not know; both in one micro-batch, too."""
    fill(tmp_path / "in")
    flow = flow_of(bids(spark, tmp_path / "in"), available_now=True)
    steps = [(1, "before"), (1, "after"), (2, "after")]
    murderer = Murderer(steps)
    monkeypatch.setattr(StreamChain, "add", lambda *given: murderer(*given))
    again = {"runs": tmp_path / "runs", "watcher": murderer}
    with pytest.raises(sl.StreamFailed, match=r"'bids' failed: .*killed before .* go on with: sl"):
        sl.run(flow, spark, slots=2, interval="400ms", reference=True, **again)
    for batch, step in steps[1:]:
        with pytest.raises(sl.StreamFailed, match=f"killed {step} the manifest of .* {batch}"):
            sl.resume("last", spark, flow=flow, **again)
    run = sl.resume("last", spark, flow=flow, **again)
    assert murderer.steps == []
    assert prices(run) == list(range(FILES * ROWS))
    assert run.verdict.kept == "yes", run.verdict
    batches = [m for m in read_manifests(staged_place(run.directory, "bids")) if not m.sealed]
    assert len(batches) == FILES
    assert spark.streams.active == []


class Late:
    """Writes a second file when rows of the first are public, and ends the stream when those are, too."""

    def __init__(self, folder: Path, monkeypatch) -> None:
        self.folder = folder
        self.rows = 0
        self.ended = threading.Event()
        monkeypatch.setattr(streams, "monotonic", lambda: 1e9 if self.ended.is_set() else 0.0)

    def event(self, happened) -> None:
        if isinstance(happened.what, OutputPublished):
            before = self.rows
            rows = (r for task, r in happened.what.rows.items() if task.startswith("all"))
            self.rows += sum(stop - start for start, stop in rows)
            self.published(before)

    def published(self, before: int) -> None:
        if before < ROWS <= self.rows:
            put(self.folder, 1, range(ROWS, 2 * ROWS))
        if self.rows == 2 * ROWS:
            self.ended.set()

    def second(self, second) -> None:
        pass


def test_rows_come_while_the_run_goes_on_and_it_ends_when_it_has_read_for_long_enough(
    spark, tmp_path, monkeypatch
):
    """By the clock of the queries, which the test has in its hands."""
    put(tmp_path / "in", 0, range(ROWS))
    late = Late(tmp_path / "in", monkeypatch)
    flow = flow_of(bids(spark, tmp_path / "in"), disorder="1s")
    asked = {"slots": 2, "interval": "300ms", "duration": "30s", "runs": tmp_path / "runs"}
    run = sl.run(flow, spark, reference=True, watcher=late, **asked)
    manifests = read_manifests(staged_place(run.directory, "bids"))
    assert [manifest.sealed for manifest in manifests] == [False, False, True]
    assert prices(run) == list(range(2 * ROWS))
    assert run.verdict.kept == "yes", run.verdict
    assert spark.streams.active == []


class Deleting(Late):
    """Writes one file after the other, until the first micro-batch is deleted; then ends the stream.

    The next file is written, and the stream is ended, only when the rows of all files before are public.
    """

    def __init__(self, folder: Path, runs: Path, monkeypatch) -> None:
        super().__init__(folder, monkeypatch)
        self.runs = runs
        self.files = 1

    def published(self, before: int) -> None:
        if self.rows == self.files * ROWS and not self.ended.is_set():
            (place,) = self.runs.glob("*/input/bids")
            if Manifests(place).floor() > 1:
                self.ended.set()
            else:
                put(self.folder, self.files, range(self.files * ROWS, (self.files + 1) * ROWS))
                self.files += 1


def test_input_that_every_kept_line_has_passed_is_deleted_and_the_run_goes_on_to_its_end(
    spark, tmp_path, monkeypatch
):
    monkeypatch.setattr(upkeep, "EVERY_S", 0.05)
    queries = streams.StreamQueries
    monkeypatch.setattr(streams, "StreamQueries", lambda retain_ms: queries(0))  # and output stays
    put(tmp_path / "in", 0, range(ROWS))
    deleting = Deleting(tmp_path / "in", tmp_path / "runs", monkeypatch)
    flow = flow_of(bids(spark, tmp_path / "in"), disorder="1s")
    asked = {"slots": 2, "interval": "300ms", "duration": "30s", "runs": tmp_path / "runs"}
    run = sl.run(flow, spark, reference=True, watcher=deleting, **asked)
    assert prices(run) == list(range(deleting.files * ROWS))
    assert run.verdict.kept == "unknown"
    assert "was deleted by retain" in run.verdict.because
    assert verify(run.directory).damages == ()
    place = staged_place(run.directory, "bids")
    assert not list(place.glob("batches/*/000000-*")), "the rows of the first micro-batch"


def test_a_stream_that_cannot_be_read_is_refused_and_nothing_is_left(spark, tmp_path):
    fill(tmp_path / "in")
    frame, runs = bids(spark, tmp_path / "in"), tmp_path / "runs"
    with pytest.raises(sl.GraphError, match="there is no column 'when' for time="):
        sl.stream(frame, time="when")
    with pytest.raises(sl.GraphError, match=r"no streaming one: say flow\.source\(df\)"):
        sl.stream(spark.range(3))
    with pytest.raises(sl.GraphError, match=r"say flow\.source\(sl\.stream\(df\)\)"):
        sl.Dataflow("f").source(frame)
    with pytest.raises(sl.UsageError, match=r"'bids' is a stream, .* say sl\.run\(flow, spark\)"):
        sl.run(flow_of(frame), slots=2, runs=runs)
    cores = spark.sparkContext.defaultParallelism
    with pytest.raises(sl.UsageError, match=rf"query of the stream .* local\[{cores + 2}\]"):
        sl.run(flow_of(frame), spark, slots=cores, runs=runs)
    counted = frame.groupBy("bidder").count()
    with pytest.raises(sl.UsageError, match=r"'bids' cannot be read as a stream: .*watermark"):
        sl.run(flow_of_counts(counted), spark, slots=2, runs=runs)
    assert not runs.exists() or list(runs.iterdir()) == []


def flow_of_counts(frame) -> sl.Dataflow:
    flow = sl.Dataflow("counted")
    flow.source(sl.stream(frame), name="bids").sink("all")
    return flow


def test_a_null_in_a_micro_batch_ends_the_run_with_the_sentence_of_staging(spark, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"bidder": 1, "price": null, "time": 90000}')
    flow = flow_of(bids(spark, tmp_path / "in"), available_now=True)
    message = r"'bids' failed: the source 'bids': the column 'price' has 1 null, .* df\.na\.fill"
    with pytest.raises(sl.StreamFailed, match=message):
        sl.run(flow, spark, slots=2, interval="400ms", runs=tmp_path / "runs")
    (directory,) = (tmp_path / "runs").iterdir()
    assert read_manifests(staged_place(RunDirectory(directory), "bids")) == []
    assert spark.streams.active == []


DRIVER = """
import sys
from pathlib import Path
from test_streams_on_spark import bids, flow_of
import snapline as sl
from snapline.spark.slot_jobs import own_session
folder, runs, faults = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
spark = own_session(2)
flow = flow_of(bids(spark, folder), available_now=True)
if any(runs.glob("*/run.json")):
    sl.resume("last", spark, flow=flow, runs=runs)
else:
    sl.run(flow, spark, slots=2, interval="400ms", reference=True, runs=runs, faults=faults)
"""


@pytest.mark.slow
def test_a_driver_that_is_killed_with_its_query_loses_and_repeats_nothing(spark, tmp_path):
    """SIGKILL at several moments, found by how long the chain is; the last resume is here."""
    fill(tmp_path / "in")
    runs = tmp_path / "runs"
    program = [sys.executable, "-c", DRIVER, str(tmp_path / "in"), str(runs)]
    paths = [str(Path(__file__).parent), *sys.path]
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    for length in range(1, FILES):
        with subprocess.Popen(program, env=surroundings, start_new_session=True) as driver:
            while driver.poll() is None and manifests_in(runs) < length:
                time.sleep(0.05)
            if driver.poll() is None:
                os.killpg(driver.pid, signal.SIGKILL)
    flow = flow_of(bids(spark, tmp_path / "in"), available_now=True)
    run = sl.resume("last", spark, flow=flow, runs=runs)
    assert prices(run) == list(range(FILES * ROWS))
    assert run.verdict.kept == "yes", run.verdict


def manifests_in(runs: Path) -> int:
    return len(list(runs.glob("*/input/bids/manifests/*.obj")))
