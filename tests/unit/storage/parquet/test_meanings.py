"""Dates, timestamps and decimals as numbers and back; the columns of Parquet files as Spark spells them."""

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from snapline.batch import Batch
from snapline.errors import UsageError
from snapline.storage.column_types import read_meanings
from snapline.storage.parquet.arrow import spark_schema, to_spark
from snapline.storage.parquet.columns import parquet_columns
from snapline.storage.parquet.meanings import as_meant, as_numbers

UTC = datetime.UTC
MOMENTS = [
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
    datetime.datetime(2024, 2, 29, tzinfo=UTC),
]
MONEY = [Decimal("-999999999999999999"), Decimal("-1"), Decimal(0), Decimal("999999999999999999")]


@pytest.mark.parametrize(
    ("meaning", "values", "kind"),
    [
        ("date", [datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)], pa.date32()),
        ("timestamp", MOMENTS, pa.timestamp("us", "UTC")),
        ("timestamp_ntz", [moment.replace(tzinfo=None) for moment in MOMENTS], pa.timestamp("us")),
        ("decimal(18,2)", [value / 100 for value in MONEY], pa.decimal128(18, 2)),
        ("decimal(18,0)", MONEY, pa.decimal128(18, 0)),
    ],
)
def test_numbers_become_what_they_were(meaning, values, kind):
    numbers = as_numbers(pa.array([values[0], *values], kind)[1:])  # a slice does not begin at 0
    assert numbers.type == pa.int64()
    back = as_meant(numbers.to_numpy(), meaning)
    assert back.type == kind
    assert back.to_pylist() == values


def test_the_numbers_are_those_that_the_documentation_names():
    assert as_numbers(pa.array([datetime.date(1970, 1, 11)])).to_pylist() == [10]
    assert as_numbers(pa.array([Decimal("-1.25")], pa.decimal128(5, 2))).to_pylist() == [-125]
    moment = datetime.datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC)
    assert as_numbers(pa.array([moment], pa.timestamp("us", "UTC"))).to_pylist() == [1_500_000]
    assert as_meant(np.array([1_500]), "timestamp_ms").to_pylist() == [moment]
    assert as_numbers(pa.array([1, 2], pa.int8())).type == pa.int8()


def test_a_null_stays_a_null_so_that_it_can_be_counted():
    assert as_numbers(pa.array([None, Decimal("1.0")], pa.decimal128(5, 1))).null_count == 1
    assert as_numbers(pa.array([None, datetime.date(1970, 1, 1)])).null_count == 1


def test_a_time_that_no_timestamp_can_say_is_refused():
    with pytest.raises(UsageError, match="too far away for a timestamp"):
        as_meant(np.array([1 << 60]), "timestamp_ms")


def test_spark_gets_the_types_that_the_numbers_mean():
    batch = Batch({"a`b": np.array([125]), "time": np.array([0]), "n": np.array([7])})
    meanings = {"a`b": "decimal(5,2)", "time": "timestamp_ms"}
    assert (
        spark_schema(batch.schema, meanings) == "`a``b` decimal(5,2), `time` timestamp, `n` bigint"
    )
    (row,) = to_spark(batch, meanings=meanings).to_pylist()
    assert row == {
        "a`b": Decimal("1.25"),
        "time": datetime.datetime(1970, 1, 1, tzinfo=UTC),
        "n": 7,
    }


def test_only_numbers_that_can_hold_a_meaning_get_it():
    batch = Batch({"n": np.array([1.5]), "word": Batch.of(x=["a"])["x"]})
    meanings = {"n": "decimal(5,2)", "word": "date", "gone": "timestamp"}
    assert spark_schema(batch.schema, meanings) == "`n` double, `word` string"
    assert to_spark(batch, meanings=meanings).to_pylist() == [{"n": 1.5, "word": "a"}]


@pytest.mark.parametrize("said", [None, [], {}])
def test_where_nothing_is_said_nothing_has_a_meaning(said):
    assert read_meanings(said) == {}


def test_meanings_are_read_as_they_were_written():
    said = {"all": {"day": "date", "price": "decimal(38,38)", "time": "timestamp_ms"}, "none": {}}
    assert read_meanings(said) == said


@pytest.mark.parametrize(
    "word", ["years", "", "decimal(39,0)", "decimal(0,0)", "decimal(5,6)", "decimal(5)", 7, None]
)
def test_a_word_that_means_nothing_is_refused(word):
    with pytest.raises(UsageError, match="the columns of the sink 'all' mean was changed"):
        read_meanings({"all": {"day": "date", "price": word}})
    with pytest.raises(UsageError, match="the columns of the sink 'all' mean was changed"):
        read_meanings({"all": ["date"]})


def test_the_columns_of_parquet_files_are_spelled_as_spark_does(tmp_path):
    table = pa.table(
        {
            "small": pa.array([1], pa.uint8()),
            "huge": pa.array([1], pa.uint64()),
            "price": pa.array([Decimal(1)], pa.decimal128(10, 2)),
            "at": pa.array([0], pa.timestamp("us", "UTC")),
            "local": pa.array([0], pa.timestamp("us")),
            "word": pa.array(["a"]).dictionary_encode(),
            "tags": pa.array([[1]], pa.list_(pa.int32())),
            "point": pa.array([{"x": 1.0}]),
            "by": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        }
    )
    (tmp_path / "day=7").mkdir()
    parquet.write_table(table, tmp_path / "day=7" / "a.parquet")
    assert parquet_columns(tmp_path) == {
        "small": "smallint", "huge": "decimal(20,0)", "price": "decimal(10,2)", "at": "timestamp",
        "local": "timestamp_ntz", "word": "string", "tags": "array<int>", "point": "struct<x:double>",
        "by": "map<string,bigint>", "day": "int",
    }  # fmt: skip


def test_an_old_timestamp_is_one_with_a_time_zone(tmp_path):
    table = pa.table({"at": pa.array([0], pa.timestamp("ns"))})
    parquet.write_table(table, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    assert parquet_columns(tmp_path / "a.parquet") == {"at": "timestamp"}


@pytest.mark.parametrize("name", ["empty", "missing", "wrong.parquet"])
def test_a_place_without_parquet_is_said(tmp_path, name):
    (tmp_path / "empty").mkdir()
    (tmp_path / "wrong.parquet").write_text("no")
    with pytest.raises(UsageError, match="there is no Parquet file that can be read in"):
        parquet_columns(tmp_path / name)
