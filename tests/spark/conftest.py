"""One real Spark for all tests of a file."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from spark_slots import Slots, lives, sleeper

from snapline.spark.slot_jobs import own_session


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """Two slots and one core more."""
    session = own_session(slots=2)
    yield session
    session.stop()


@pytest.fixture
def slots(spark: SparkSession, tmp_path: Path) -> Iterator[Slots]:
    """Jobs that sleep; after the test they are gone, whatever it did."""
    slots = Slots(spark, tmp_path, sleeper(tmp_path))
    yield slots
    assert not slots.jobs.stop()
    assert not [pid for pid in slots.pids() if lives(pid)]
