"""What a run left, and what it publishes while it goes on, as `spark.read.format("snapline")` gives it."""

import json
import threading
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql.streaming import StreamingQuery
from scripted_faults import PATIENT, Script, Step, committed, kill
from spark_slots import eventually

from held_input import Hold
from snapline.batch import Batch
from snapline.ids import TaskId
from snapline.rundir.directory import RunDirectory
from snapline.rundir.spec import Spec
from snapline.runs.finished import Run
from snapline.runs.run import carry_out, create_run, prepare
from snapline.storage.api import Extent, Life
from snapline.storage.files.outlet import FileOutlet
from streaming import started

pytestmark = pytest.mark.spark

SPEC = Spec("q3", protocol="uncoordinated", rate=500, duration_ms=4_000, interval_ms=400)
COLUMNS = "name string, id bigint"
"""Two of the columns, in another order than theirs."""


def source(spark, run, **options):
    return spark.read.format("snapline").options(**options).load(str(run))


def as_tuples(frame):
    return sorted(tuple(row) for row in frame.collect())


@dataclass
class Streamed:
    """A run that was read as a stream while it went on; the stream was stopped and restarted once."""

    run: Run
    place: Path  #: the directory of the stream's Parquet files and of its checkpoint
    ends: list[int]  #: through which manifest each of the two queries has read


def start_stream(spark, run, place) -> StreamingQuery:
    rows = spark.readStream.format("snapline").schema(COLUMNS).load(str(run))
    into = rows.writeStream.format("parquet").option("checkpointLocation", str(place / "offsets"))
    return started(lambda: into.start(str(place / "rows")))


def last_manifest(query) -> int:
    """Through which manifest a query has read; 0 before it has read any."""
    if query.exception() is not None:
        raise query.exception()
    offsets = [progress.sources[0].endOffset for progress in query.recentProgress]
    return max((json.loads(offset)["manifest"] for offset in offsets if offset), default=0)


@pytest.fixture(scope="module")
def streamed(spark, tmp_path_factory):
    """The stream begins before the run has written anything; a slot is killed, then the query restarts."""
    place, restarted, ends = tmp_path_factory.mktemp("stream"), threading.Event(), []

    def again(driver, entry):
        return restarted.is_set() and committed(driver, entry)

    script = Script([Step(committed, kill(1)), Step(again, lambda _: None)], Hold(place))
    with pytest.MonkeyPatch.context() as patch:
        script.install(patch)
        prepared = prepare(SPEC, spark, runs=tmp_path_factory.mktemp("runs"))
        directory = create_run(prepared)
        queries = [start_stream(spark, directory.path, place)]

        def restart():
            eventually(lambda: script.struck and last_manifest(queries[0]) > 0, "a first batch")
            queries[0].stop()
            ends.append(last_manifest(queries[0]))
            queries.append(start_stream(spark, directory.path, place))
            restarted.set()

        thread = threading.Thread(target=restart)
        thread.start()
        run = carry_out(replace(prepared, directory=directory), PATIENT)
        thread.join()
    assert run.verdict.kept == "yes", run.verdict
    assert len(script.struck) == 2
    queries[1].processAllAvailable()
    ends.append(last_manifest(queries[1]))
    queries[1].stop()
    return Streamed(replace(run, spark=spark), place, ends)


@pytest.fixture(scope="module")
def finished(streamed):
    return streamed.run


def test_a_stream_that_is_stopped_and_restarted_has_every_published_row_once(spark, streamed):
    expected = sorted(streamed.run.batch().select("name", "id").rows())
    assert as_tuples(spark.read.parquet(str(streamed.place / "rows"))) == expected
    assert len(expected) > 0
    first, last = streamed.ends
    assert 0 < first < last == streamed.run.directory.output.published()


def test_a_stream_of_a_run_that_is_over_comes_to_its_end(spark, finished, tmp_path):
    rows = spark.readStream.format("snapline").load(str(finished.directory.path))
    into = rows.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "at"))
    query = started(lambda: into.trigger(availableNow=True).start(str(tmp_path / "rows")))
    query.awaitTermination()
    assert last_manifest(query) == finished.directory.output.published()
    found = spark.read.parquet(str(tmp_path / "rows"))
    assert found.schema == rows.schema
    assert as_tuples(found) == as_tuples(finished.output())


@pytest.mark.parametrize(
    ("options", "same"),
    [
        ({}, lambda run: run.output()),
        ({"sink": "results", "what": "output"}, lambda run: run.output("results")),
        ({"what": "uncommitted"}, lambda run: run.output(uncommitted=True)),
        ({"what": "log"}, lambda run: run.channel_log()),
        ({"what": "checkpoints"}, lambda run: run.checkpoints()),
        ({"what": "journal"}, lambda run: run.journal()),
        ({"what": "seconds"}, lambda run: run.seconds()),
        ({"what": "state"}, lambda run: run.state()),
        (
            {"what": "state", "operator": "join", "part": "left"},
            lambda run: run.state("join", "left"),
        ),
    ],
)
def test_each_reading_is_what_the_run_itself_shows(spark, finished, options, same):
    frame, expected = source(spark, finished.directory.path, **options), same(finished)
    assert frame.schema == expected.schema
    found = frame.collect()
    assert len(found) > 0
    assert sorted(map(str, found)) == sorted(map(str, expected.collect()))


def test_what_cannot_be_read_is_said_in_one_sentence(spark, finished):
    with pytest.raises(AnalysisException) as refused:
        source(spark, finished.directory.path, sink="other")
    said = str(refused.value)
    assert "has no sink 'other': there is results" in said
    assert "Traceback" not in said
    assert len(said.strip().splitlines()) <= 2  # the second one is Spark's: SQLSTATE


def test_a_stream_that_cannot_be_read_is_said_in_one_sentence(spark, finished):
    rows = spark.readStream.format("snapline").option("what", "log")
    query = started(rows.load(str(finished.directory.path)).writeStream.format("noop").start)
    with pytest.raises(StreamingQueryException, match="only output is read as a stream") as refused:
        query.awaitTermination()
    assert "Traceback" not in str(refused.value)


class Kept:
    """A run that keeps its output for eight seconds of a clock of its own, written by hand."""

    def __init__(self, runs):
        spec = Spec("q12", slots=1, retain_ms=8_000)
        said = {**spec.said(), "sinks": ["out"]}
        self.directory, self.now_ms = RunDirectory.create(runs, "q12", "aligned", said), 0
        self.outlet = FileOutlet(self.directory.path / "output", 8_000, lambda: self.now_ms)
        self.task, self.manifest = TaskId("out/0"), 0
        self.egress = self.outlet.open(Life(self.task, 1, 1), 0)

    def publish(self, manifests):
        """One manifest of one row each second."""
        for _ in range(manifests):
            self.now_ms += 1_000
            row = self.egress.position
            self.egress.append(Batch.of(n=[row]))
            self.egress.cut()
            self.egress.sync()
            self.manifest += 1
            assert self.outlet.publish(
                self.manifest, {self.task: Extent(self.egress.file, row, row + 1)}
            )
            self.outlet.compact(self.manifest)


def test_a_stream_whose_rows_were_deleted_fails_in_one_sentence_unless_it_may_lose_them(
    spark, tmp_path
):
    run = Kept(tmp_path)

    def stream(**options):
        """Read all that is there, from where the stream is, and return all that it ever read."""
        rows = spark.readStream.format("snapline").options(**options)
        into = rows.load(str(run.directory.path)).writeStream.format("parquet")
        into = into.option("checkpointLocation", str(tmp_path / "at")).trigger(availableNow=True)
        started(lambda: into.start(str(tmp_path / "rows"))).awaitTermination()
        return [n for (n,) in as_tuples(spark.read.parquet(str(tmp_path / "rows")))]

    run.publish(3)
    assert stream() == [0, 1, 2]
    run.publish(30)
    first = run.directory.output.floor().place
    told = rf"through manifest 3, and manifests 4 to {first} were deleted"
    with pytest.raises(StreamingQueryException, match=told) as refused:
        stream()
    assert "Traceback" not in str(refused.value)
    assert stream(failOnDataLoss="false") == [0, 1, 2, *range(first, 33)]
