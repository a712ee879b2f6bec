"""What Structured Streaming leaves on disk, as a reader takes it."""

import json
import os

import pyarrow as pa
import pytest
from pyarrow import parquet

from snapline.errors import SnaplineError
from snapline.systems.structured_streaming.files import (
    MicroBatches,
    RowsSoFar,
    logged_files,
    present_files,
    read_files,
    rows_dropped,
    rows_in,
)


@pytest.fixture
def sink(tmp_path):
    """A sink with a file of one row for each of these names."""
    sink = tmp_path / "a sink"
    (sink / "_spark_metadata").mkdir(parents=True)
    for age, name in enumerate(("b0", "b1", "b2", "torn", "a3")):
        file = sink / f"part-{name}.parquet"
        parquet.write_table(pa.table({"x": [age]}), file)
        os.utime(file, (1_000 + age, 1_000 + age))
    return sink


def log(sink, entry, *names, version="v1", action="add"):
    lines = [
        json.dumps({"path": (sink / f"part-{name}.parquet").as_uri(), "action": action})
        for name in names
    ]
    (sink / "_spark_metadata" / entry).write_text("\n".join([version, *lines]))


def short(files):
    return [file.name.removeprefix("part-").removesuffix(".parquet") for file in files]


def test_only_files_in_the_log_count_batch_by_batch(sink):
    log(sink, "0", "b0")
    log(sink, "10", "a3")
    log(sink, "2", "b2", "b1")
    (sink / "_spark_metadata" / ".3.crc").write_text("no entry")
    assert short(logged_files(sink)) == ["b0", "b2", "b1", "a3"]
    assert all(file.is_file() for file in logged_files(sink))


def test_a_compacted_entry_stands_for_all_before_it(sink):
    log(sink, "8", "b0")
    log(sink, "9", "b1")
    log(sink, "9.compact", "b0", "b1")
    log(sink, "10", "b2")
    assert short(logged_files(sink)) == ["b0", "b1", "b2"]
    (sink / "_spark_metadata" / "8").unlink()  # Spark forgets them after a while
    (sink / "_spark_metadata" / "9").unlink()
    assert short(logged_files(sink)) == ["b0", "b1", "b2"]


def test_a_log_of_another_version_is_not_guessed_at(sink):
    log(sink, "0", "b0", version="v2")
    with pytest.raises(SnaplineError, match="'v2'"):
        logged_files(sink)


def test_without_a_log_all_files_count_in_the_order_of_their_times(sink):
    (sink / "_temporary").mkdir()
    parquet.write_table(pa.table({"x": [9]}), sink / "_temporary" / "part-half.parquet")
    (sink / ".part-b0.parquet.crc").write_text("")
    (sink / "_SUCCESS").write_text("")
    assert short(present_files(sink)) == ["b0", "b1", "b2", "torn", "a3"]


def test_rows_come_with_the_time_of_their_file_and_empty_files_with_none(sink):
    parquet.write_table(pa.table({"x": pa.array([], pa.int64())}), sink / "part-empty.parquet")
    written = read_files(present_files(sink))
    assert [part.rows["x"].tolist() for part in written] == [[0], [1], [2], [3], [4]]
    assert [part.at_s for part in written] == [1_000, 1_001, 1_002, 1_003, 1_004]


def test_a_file_that_is_being_written_has_no_rows_yet(sink):
    (sink / "part-new.parquet").write_bytes(b"PAR1 and then")
    assert rows_in(sink / "part-new.parquet") == 0
    assert rows_in(sink / "part-gone.parquet") == 0
    assert rows_in(sink / "part-b0.parquet") == 1


def test_a_checkpoint_says_which_micro_batches_were_begun_and_ended(tmp_path):
    batches = MicroBatches(tmp_path)
    assert (batches.planned, batches.committed) == (-1, -1)
    for name in ("offsets/9", "offsets/10", "offsets/.11.tmp", "commits/9", "commits/.10.crc"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert (batches.planned, batches.committed) == (10, 9)


def test_what_a_micro_batch_has_written_is_younger_than_its_beginning(sink):
    batches = MicroBatches(sink.parent)
    assert batches.younger(3, sink) == []
    begun = sink.parent / "offsets" / "3"
    begun.parent.mkdir()
    begun.touch()
    os.utime(begun, (1_002, 1_002))
    assert sorted(short(batches.younger(3, sink))) == ["a3", "torn"]


def progress(number, *dropped, read=()):
    operators = [{"numRowsDroppedByWatermark": rows} for rows in dropped]
    sources = [{"numInputRows": rows} for rows in read]
    return json.dumps({"batchId": number, "stateOperators": operators, "sources": sources}) + "\n"


def test_dropped_rows_are_counted_once_for_each_micro_batch(tmp_path):
    file = tmp_path / "progress.jsonl"
    assert rows_dropped(file) == 0
    again = progress(1, 5)
    file.write_text(progress(0) + again + again + progress(2, 1, 2) + progress(3, 100)[:-9])
    assert rows_dropped(file) == 8


def test_rows_are_counted_while_reports_are_added(tmp_path):
    file = tmp_path / "progress.jsonl"
    rows = RowsSoFar(file)

    def seen(added):
        with file.open("a") as out:
            out.write(added)
        rows.look()
        return rows.read, rows.dropped

    rows.look()  # there is no file yet
    assert (rows.read, rows.dropped) == (0, 0)
    assert seen(progress(0, 2, read=(10, 5))) == (15, 2)
    half = progress(1, 1, read=(7,))
    assert seen(half[:20]) == (15, 2)  # a report that is not complete counts when it is
    assert seen(half[20:]) == (22, 3)
    # The driver was killed, and the next one ran the last batch again, with more input.
    assert seen(progress(1, 0, read=(9,)) + progress(2, read=(1, 1))) == (26, 2)
