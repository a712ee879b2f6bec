"""Input as directories of Parquet files: whole, in order, and what flushes it lies elsewhere."""

from pyarrow import parquet

from snapline.batch import Batch
from snapline.systems.harness.file_input import FileInput

SCHEMA = {"id": "int64", "time": "int64", "name": "str", "post": "bool"}


def records(*ids):
    return Batch.of(
        id=[*ids], time=[10 * i for i in ids], name=["a"] * len(ids), post=[True] * len(ids)
    )


def test_files_are_numbered_in_the_order_in_which_records_were_given(tmp_path):
    given = FileInput(tmp_path, ("gets", "posts"))
    given.give("gets", records(1, 2))
    given.give("gets", records(3))
    given.give("posts", records(4))
    files = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    assert [str(file) for file in files] == [
        "input/gets/000000.parquet",
        "input/gets/000001.parquet",
        "input/posts/000000.parquet",
    ]
    assert parquet.read_table(tmp_path / "input" / "gets")["id"].to_pylist() == [1, 2, 3]


def test_a_stream_without_records_is_a_directory_that_is_there(tmp_path):
    FileInput(tmp_path, ("gets",))
    assert (tmp_path / "input" / "gets").is_dir()


def test_what_flushes_is_no_input_but_found_by_the_pattern(tmp_path):
    given = FileInput(tmp_path, ("gets",))
    given.give("gets", records(1))
    given.flush("gets", SCHEMA, 99_000)
    assert parquet.read_table(tmp_path / "input" / "gets")["id"].to_pylist() == [1]
    assert given.pattern("gets") == f"{tmp_path}/{{input,flush}}/gets"
    flushed = parquet.read_table(tmp_path / "flush" / "gets")
    assert flushed.to_pylist() == [{"id": -1, "time": 99_000, "name": "", "post": False}]
    assert flushed.schema.names == parquet.read_table(tmp_path / "input" / "gets").schema.names
