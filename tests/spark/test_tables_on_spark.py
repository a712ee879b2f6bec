"""What a real run left, as DataFrames; and input that a Spark job made."""

from typing import Any

import pytest

from snapline.batch import concat
from snapline.errors import UsageError
from snapline.ids import task_id
from snapline.journal.codec import lines
from snapline.judge.history import journal_entries
from snapline.rundir.spec import Spec
from snapline.rundir.stored_input import FORMATS, sources_of, stored_input
from snapline.runs import tables
from snapline.runs.run import run
from snapline.spark import generate
from snapline.storage.api import rows_of
from snapline.storage.files.frames import scan
from snapline.storage.files.log import seed_of
from snapline.workload.common.base import Params
from snapline.workload.nexmark.queries import is_local, is_wanted

pytestmark = pytest.mark.spark

SINK = "results"
SPEC = Spec(
    "q3",  # a join over all time: its state is all that passed its filters
    protocol="uncoordinated",
    rate=500,
    duration_ms=4_000,
    interval_ms=400,
    faults="kill slot=1 at=2s",
    spares=1,
)


@pytest.fixture(scope="module")
def finished(spark, tmp_path_factory):
    """One run with a kill in it, so that some output was written and never published."""
    done = run(SPEC, spark, runs=tmp_path_factory.mktemp("runs"))
    assert done.verdict.kept == "yes", done.verdict
    # A process that was killed may have left half a line.
    with (done.directory.path / "journal" / "slot-9.9.jsonl").open("w") as file:
        file.write(next(lines([])) + '{"type":"Happened","at_us":1,"actor":"cut')
    return done.directory


def tasks():
    return [task_id(SINK, slot) for slot in range(SPEC.slots)]


def as_tuples(frame):
    return sorted(tuple(row) for row in frame.collect())


def test_committed_output_is_what_was_published(spark, finished):
    frame = tables.output(spark, finished, SINK)
    expected = concat(list(rows_of(finished.output, tasks(), "committed")))
    assert frame.columns == list(expected.columns)
    assert as_tuples(frame) == sorted(expected.rows())
    assert len(expected) > 0


def test_uncommitted_output_is_all_that_was_ever_written(spark, finished):
    frame = tables.output(spark, finished, SINK, "uncommitted")
    expected = concat(list(rows_of(finished.output, tasks(), "uncommitted")))
    assert as_tuples(frame) == sorted(expected.rows())


def test_a_sink_that_is_not_there_is_refused_with_those_that_are(spark, finished):
    with pytest.raises(UsageError, match=f"no sink 'other': there is {SINK}"):
        tables.output(spark, finished, "other")


def test_a_sink_that_wrote_nothing_is_empty_without_columns(spark, finished, tmp_path):
    bare = type(finished)(tmp_path)
    (tmp_path / "run.json").write_text("{}")
    (tmp_path / "output").mkdir()
    (tmp_path / "output" / f"{SINK}-0.e1.i1.egress").touch()
    frame = tables.output(spark, bare, SINK)
    assert (frame.count(), frame.columns) == (0, [])


def test_state_is_that_of_the_last_line(spark, finished):
    """Deltas and all: once the run is over, each side of the join holds what passed its filter."""
    sources: Any = sources_of("q3", SPEC.params)
    expected = {
        "left": sources["auctions"].everything().take(is_wanted(sources["auctions"].everything())),
        "right": sources["persons"].everything().take(is_local(sources["persons"].everything())),
    }
    listing = tables.state(spark, finished).collect()
    for part, batch in expected.items():
        frame = tables.state(spark, finished, "join", part)
        assert {row._task for row in frame.collect()} == {"results/0", "results/1"}
        assert as_tuples(frame.select(*batch.columns)) == sorted(batch.rows())
        assert sum(row.rows for row in listing if row.part == part) == len(batch) > 0
    assert {(row.operator, row.task, row.part) for row in listing} == {
        ("join", f"results/{slot}", part) for slot in (0, 1) for part in expected
    }


def test_state_is_asked_for_by_names_that_are_there(spark, finished):
    with pytest.raises(UsageError, match="operators with state: join"):
        tables.state(spark, finished, "persons")
    with pytest.raises(UsageError, match="which part of the state of join"):
        tables.state(spark, finished, "join")


def test_the_channel_log_lists_every_message_that_is_kept(spark, finished):
    frame = tables.channel_log(spark, finished)
    segments = (finished.path / "logs").glob("*.log")
    expected = sum(len(scan(path, 0, seed_of(path)).frames) for path in segments)
    assert frame.count() == expected > 0
    row = frame.orderBy("channel", "seq").first()
    assert ">" in row.channel
    assert row.records >= 0
    assert row.bytes > row.header_bytes
    assert (finished.path / "logs" / row.file).is_file()


def test_the_journal_has_every_whole_entry_of_every_process(spark, finished):
    frame = tables.journal(spark, finished)
    entries = []
    for path in (finished.path / "journal").glob("*.jsonl"):
        entries += journal_entries(finished, path)
    kinds = [type(entry).__name__ for entry in entries]
    counted = {row["type"]: row["count"] for row in frame.groupBy("type").count().collect()}
    assert counted == {kind: kinds.count(kind) for kind in set(kinds)}
    killed = frame.where("what = 'ProcessKilled'").collect()
    assert [row.actor for row in killed] == ["slot/1"]
    assert '"pids":[' in killed[0].body.replace(" ", "")
    replayed = frame.where("what = 'MessageReplayed'").first()
    assert replayed.channel
    assert replayed.seq
    assert frame.where("event = 'SnapshotStored'").count() > 0


def test_spark_reads_the_journal_by_itself(spark, finished):
    frame = spark.read.json(str(finished.path / "journal"))
    assert {"type", "at_us", "actor", "what", "event"} <= set(frame.columns)
    assert frame.where("what.type = 'ProcessKilled'").count() == 1


@pytest.mark.parametrize("form", FORMATS)
def test_input_that_spark_made_is_what_the_generator_makes(spark, tmp_path, monkeypatch, form):
    monkeypatch.setattr(generate, "PIECE_RECORDS", 400)
    params = Params(seed=3, partitions=2, records=1_000, duration_ms=1_000)
    seen = []
    description = generate.generate(
        "q12",
        params,
        tmp_path / "in",
        format=form,
        spark=spark,
        on_progress=lambda done, pieces: seen.append((done, pieces)),
    )
    assert seen[-1] == (6, 6)
    assert description["sources"]["bids"]["records"] == 2_000
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    workload, stored, sources = stored_input(tmp_path / "in")
    assert (workload, stored) == ("q12", params)
    bids = sources["bids"]
    made: Any = sources_of("q12", params)["bids"]
    expected = made.everything()
    assert concat([bids.read(p, 0, bids.end(p)) for p in range(2)]) == expected
    if form == "parquet":
        frame = spark.read.parquet(str(tmp_path / "in" / "bids"))
        assert frame.columns == list(expected.columns)
        assert as_tuples(frame) == sorted(expected.rows())


def test_a_task_that_cannot_write_is_reported_in_its_own_words(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(generate, "write_piece", _fail)
    with pytest.raises(Exception, match="could not be written: OSError: the disk is full"):
        generate.generate("q12", Params(), tmp_path / "in", spark=spark)
    assert list(tmp_path.iterdir()) == []


def _fail(*_):
    raise OSError("the disk is full")
