"""How `format("snapline")` understands its options and plans to read: without Spark, and without a run."""

from datetime import date

import numpy as np
import pytest
from pyspark import cloudpickle
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DateType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from pyspark_snapline import DefaultSource
from snapline.batch import Batch, Words
from snapline.errors import ObjectMissing, RowsDeleted, UsageError
from snapline.ids import TaskId
from snapline.rundir.directory import RunDirectory
from snapline.rundir.spec import Spec
from snapline.storage.api import Extent, Life
from snapline.storage.files.outlet import FileOutlet

NUMBERS = StructType([StructField("n", LongType())])


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    """Whoever plans in Spark's process may set it; here it is set back."""
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "")


def a_run(runs, *sinks, meanings=None, **fields):
    spec = Spec("q12", slots=1, **fields)
    said = {**spec.said(), "sinks": list(sinks), "meanings": meanings or {}}
    return RunDirectory.create(runs, "q12", spec.protocol, said)


@pytest.fixture
def directory(tmp_path):
    return a_run(tmp_path / "runs", "out")


class Sink:
    """A sink task that writes, and whose output is published a bit at a time."""

    def __init__(self, directory, name="out"):
        self.directory, self.task = directory, TaskId(f"{name}/0")
        self.egress = directory.outlet.open(Life(self.task, 1, 1), 0)
        self.public = 0

    def write(self, stop):
        numbers = np.arange(self.egress.position, stop)
        self.egress.append(
            Batch.of(
                n=numbers,
                word=Words((numbers % 2).astype(np.int32), ("a", "b")),
                ids=[[int(n)] for n in numbers],
                raw=[bytes([n]) for n in numbers],
            )
        )
        self.egress.sync()
        return self

    def publish(self, stop):
        number = self.directory.outlet.last_published() + 1
        extent = Extent(self.egress.file, self.public, stop)
        assert self.directory.outlet.publish(number, {self.task: extent})
        self.public = stop
        return self


def source(directory, **options):
    return DefaultSource({"path": str(getattr(directory, "path", directory)), **options})


def numbers(reader, partitions):
    """What other processes read: reader and partitions are sent to them."""
    copied = cloudpickle.loads(cloudpickle.dumps(reader))
    sent = cloudpickle.loads(cloudpickle.dumps(list(partitions)))
    return [n for part in sent for batch in copied.read(part) for n in batch["n"].to_pylist()]


def batch_of(made, schema=NUMBERS):
    reader = made.reader(schema)
    return numbers(reader, reader.partitions())


def between(reader, after, through):
    return numbers(reader, reader.partitions({"manifest": after}, {"manifest": through}))


# Batches.


def test_spark_finds_the_format_by_the_name_of_a_package():
    assert DefaultSource.name() == "snapline"


def test_output_is_what_is_public_and_on_demand_all_that_was_written(directory):
    Sink(directory).write(20).write(30).publish(25)
    made = source(directory)
    assert made.schema() == "`n` bigint, `word` string, `ids` array<bigint>, `raw` binary"
    assert batch_of(made) == list(range(25))
    assert batch_of(source(directory, what="uncommitted")) == list(range(30))


def test_without_checkpoints_all_output_is_public(tmp_path):
    directory = a_run(tmp_path, "out", protocol="none")
    Sink(directory).write(7)
    assert batch_of(source(directory)) == list(range(7))


def test_numbers_come_as_what_they_mean_in_batches_and_in_streams(tmp_path):
    directory = a_run(tmp_path, "out", meanings={"out": {"n": "date"}})
    schema = StructType([StructField("n", DateType())])
    early = source(directory).streamReader(schema)  # it was planned before there was a row
    Sink(directory).write(2).publish(2)
    assert source(directory).schema().startswith("`n` date, `word` string")
    days = [date(1970, 1, 1), date(1970, 1, 2)]
    assert batch_of(source(directory), schema) == days
    assert batch_of(source(directory, what="uncommitted"), schema) == days
    assert between(early, 0, 1) == days
    assert between(source(directory).streamReader(schema), 0, 1) == days


def test_where_nothing_is_public_there_is_nothing_to_read(directory):
    Sink(directory).write(3)
    reader = source(directory).reader(NUMBERS)
    assert reader.partitions() == []
    assert numbers(reader, [type("Made", (), {"value": None})()]) == []  # as Spark makes one up


def test_columns_are_those_that_the_user_named_in_their_order(directory):
    Sink(directory).write(2).publish(2)
    schema = StructType(
        [
            StructField("raw", BinaryType()),
            StructField("ids", ArrayType(LongType())),
            StructField("word", StringType(), nullable=False),
        ]
    )
    reader = source(directory).reader(schema)
    [found] = reader.read(reader.partitions()[0])
    assert found.schema.names == ["raw", "ids", "word"]
    assert not found.schema.field("word").nullable
    assert found.to_pylist()[1] == {"raw": b"\x01", "ids": [1], "word": "b"}


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (StructField("m", LongType()), "there is no column 'm': there is n bigint, word string"),
        (StructField("n", StringType()), r"column 'n' is bigint, and .schema\(\) says string"),
    ],
)
def test_columns_that_are_not_there_are_refused_by_name(directory, field, message):
    Sink(directory).write(2).publish(2)
    with pytest.raises(UsageError, match=message):
        batch_of(source(directory), StructType([field]))


# Streams.


def test_a_stream_reads_what_lies_between_two_manifests_as_often_as_it_is_asked(directory):
    sink = Sink(directory).write(10).publish(4)
    reader = source(directory).streamReader(NUMBERS)
    assert reader.initialOffset() == {"manifest": 0}
    assert reader.latestOffset() == {"manifest": 1}
    assert between(reader, 0, 1) == [0, 1, 2, 3]
    sink.publish(4).write(20).publish(15)
    assert reader.latestOffset() == {"manifest": 3}
    assert between(reader, 1, 2) == []
    assert between(reader, 1, 3) == list(range(4, 15))
    again = source(directory).streamReader(NUMBERS)
    assert between(again, 0, 1) == [0, 1, 2, 3]
    assert between(again, 2, 3) == list(range(4, 15))
    assert between(again, 3, 3) == []


def test_a_stream_may_begin_before_anything_was_written(directory):
    reader = source(directory).streamReader(NUMBERS)
    assert reader.latestOffset() == {"manifest": 0}
    Sink(directory).write(3).publish(2)
    assert reader.latestOffset() == {"manifest": 1}
    assert between(reader, 0, 1) == [0, 1]


def test_a_stream_of_one_sink_reads_nothing_of_another(tmp_path):
    directory = a_run(tmp_path, "left", "right")
    left, right = Sink(directory, "left"), Sink(directory, "right")
    left.write(9).publish(5)
    right.write(9).publish(2)
    reader = source(directory, sink="right").streamReader(NUMBERS)
    assert reader.latestOffset() == {"manifest": 2}
    assert between(reader, 0, 2) == [0, 1]


def test_a_query_whose_checkpoint_is_of_another_run_is_refused(directory):
    Sink(directory).write(3).publish(2)
    reader = source(directory).streamReader(NUMBERS)
    with pytest.raises(
        UsageError, match=r"has read manifests 1 to 7, and .* has only 1: .* new ch"
    ):
        reader.partitions({"manifest": 6}, {"manifest": 7})


def test_rows_that_are_gone_are_missed(directory):
    sink = Sink(directory).write(3).publish(2)
    reader = source(directory).streamReader(NUMBERS)
    parts = reader.partitions({"manifest": 0}, {"manifest": 1})
    (directory.path / "output" / f"{sink.egress.file}.egress").unlink()
    with pytest.raises(ObjectMissing, match=r"there is no .*\.egress"):
        numbers(reader, parts)


# What is refused.


def refused_stream(made, message):
    """Spark asks a new query where it begins, and one that goes on what there is."""
    reader = made.streamReader(NUMBERS)
    for ask in (reader.initialOffset, reader.latestOffset, lambda: list(reader.read(None))):
        with pytest.raises(UsageError, match=message):
            ask()


def test_columns_that_nobody_knows_have_to_be_said(directory):
    with pytest.raises(UsageError, match=r"nobody knows the columns of out, .* \.schema\("):
        source(directory).schema()
    Sink(directory)  # its file is there, and empty
    with pytest.raises(UsageError, match=r"nobody knows the columns of out, .* \.schema\("):
        source(directory).schema()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"Sync": "out"}, "the format snapline has no option 'sync': did you mean sink"),
        (
            {"what": "input"},
            r"'input'\): there is output, uncommitted, log, checkpoints, journal, state",
        ),
        ({"sink": "other"}, "has no sink 'other': there is out"),
        ({"what": "log", "sink": "out"}, "'sink'.* is for .* output and uncommitted, .* reads log"),
        ({"operator": "join"}, "'operator'.* is for .* state, and this reads output: leave it out"),
        ({"what": "state", "part": "left"}, r'say option\("operator"\), too'),
        ({"what": "state", "operator": "join"}, "no state of 'join' was committed"),
        ({"what": "state", "flow": "nowhere.py:flow"}, "there is no file nowhere.py"),
    ],
)
def test_an_option_that_cannot_be_is_refused(directory, options, message):
    with pytest.raises(UsageError, match=message):
        source(directory, **options).schema()
    with pytest.raises(UsageError, match=message):
        source(directory, **options).reader(NUMBERS)


def test_where_there_are_several_sinks_one_has_to_be_named(tmp_path):
    directory = a_run(tmp_path, "left", "right")
    message = r'several sinks: say .option\("sink", .* left or right'
    with pytest.raises(UsageError, match=message):
        source(directory).schema()
    refused_stream(source(directory), message)


def test_what_is_no_run_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=rf"no run 'gone' in {tmp_path}/runs"):
        source("gone").schema()
    with pytest.raises(UsageError, match=f"{tmp_path} is no run: there is no run.json in it"):
        source(tmp_path).schema()
    with pytest.raises(UsageError, match="say which run"):
        DefaultSource({}).schema()
    other = a_run(tmp_path, system="structured-streaming")
    with pytest.raises(UsageError, match="is a run of structured-streaming: its output is in"):
        source(other).schema()


def test_a_run_is_found_by_its_name_too(tmp_path, directory, monkeypatch):
    Sink(directory).write(3).publish(2)
    monkeypatch.chdir(tmp_path)
    for name in (directory.name, "last", f"file://{directory.path}"):
        assert batch_of(source(name)) == [0, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"what": "journal"}, "only output is read as a stream: read journal with spark.read"),
        ({"path": "last"}, r"the last one is another one tomorrow: say .load\(\".*q12-"),
    ],
)
def test_only_the_output_of_one_run_is_a_stream(tmp_path, directory, options, message, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused_stream(source(directory, **options), message)


def test_without_lines_there_is_no_stream(tmp_path):
    directory = a_run(tmp_path, "out", protocol="none")
    refused_stream(source(directory), "runs under none, which commits no lines")


# Output that is kept for a while only.


class Kept:
    """A run that keeps its output for eight seconds: forty manifests of two rows, one a second."""

    def __init__(self, runs):
        self.directory, self.now_ms = a_run(runs, "out", retain_ms=8_000), 0
        self.outlet = FileOutlet(self.directory.path / "output", 8_000, lambda: self.now_ms)
        self.egress = self.outlet.open(Life(TaskId("out/0"), 1, 1), 0)
        self.manifest = 0

    def publish(self, manifests):
        for _ in range(manifests):
            self.now_ms += 1_000
            first = self.egress.position
            self.egress.append(Batch.of(n=[first, first + 1]))
            self.egress.cut()
            self.egress.sync()
            self.manifest += 1
            extent = Extent(self.egress.file, first, first + 2)
            assert self.outlet.publish(self.manifest, {TaskId("out/0"): extent})
            self.outlet.compact(self.manifest)
        return self

    def stream(self, **options):
        return source(self.directory, **options).streamReader(NUMBERS)


@pytest.fixture
def kept(tmp_path):
    return Kept(tmp_path / "runs").publish(40)


def test_a_new_reader_begins_with_what_is_left(kept):
    reader = kept.stream()
    begin, end = reader.initialOffset(), reader.latestOffset()
    assert 20 < begin["manifest"] < 33
    assert end == {"manifest": 40}
    left = list(range(2 * begin["manifest"], 80))
    assert numbers(reader, reader.partitions(begin, end)) == left
    batch = source(kept.directory).reader(NUMBERS)
    assert numbers(batch, batch.partitions()) == left


def test_a_stream_that_is_behind_fails_with_one_sentence_or_goes_on_with_what_is_left(kept):
    floor = kept.stream().initialOffset()["manifest"]
    strict, lenient = kept.stream(), kept.stream(failOnDataLoss="False")
    told = rf"through manifest 3, and manifests 4 to {floor} were deleted .*retain.*failOnDataLoss"
    with pytest.raises(UsageError, match=told):
        strict.partitions({"manifest": 3}, {"manifest": 40})
    for after in (3, floor):
        found = lenient.partitions({"manifest": after}, {"manifest": 40})
        assert numbers(lenient, found) == list(range(2 * floor, 80))
    assert lenient.partitions({"manifest": 3}, {"manifest": 5}) == []  # a batch that is done again


def test_a_reader_whose_rows_are_deleted_before_it_reads_them_is_told_or_leaves_them_out(kept):
    strict, lenient = kept.stream(), kept.stream(failondataloss="false")
    begin = strict.initialOffset()
    planned = strict.partitions(begin, {"manifest": 40})
    kept.publish(4)
    with pytest.raises(RowsDeleted, match=r"rows .* of out/0 were deleted"):
        numbers(strict, planned)
    later = kept.stream().initialOffset()["manifest"]
    assert begin["manifest"] < later < 40
    assert numbers(lenient, planned) == list(range(2 * later, 80))
    kept.publish(40)
    assert numbers(lenient, planned) == []


def test_what_is_no_answer_to_fail_on_data_loss_is_refused(kept):
    with pytest.raises(UsageError, match="true or false, not 'maybe'"):
        source(kept.directory, failOnDataLoss="maybe").reader(NUMBERS)
