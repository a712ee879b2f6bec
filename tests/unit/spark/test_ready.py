"""What is looked at before a run: sessions, places. Pure, or with a Spark that only answers."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

from snapline.errors import NoSpark, SnaplineError, UsageError
from snapline.rundir.place import check_place
from snapline.spark import ready
from snapline.spark.ready import check_session, check_version


def test_sessions_that_slots_cannot_use_are_refused(monkeypatch):
    remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(UsageError, match=r"^spark is a Spark Connect session"):
        check_session(remote, "spark")
    stopped = SparkSession.__new__(SparkSession)
    monkeypatch.setattr(SparkSession, "sparkContext", SimpleNamespace(_jsc=None))
    with pytest.raises(UsageError, match=r"^spark is a session that was stopped"):
        check_session(stopped, "spark")


def test_a_spark_of_another_age_is_not_started(monkeypatch):
    check_version("4.1.0")
    with pytest.raises(NoSpark, match=r"^Spark 3\.5\.1 is not supported: Snapline needs Spark 4"):
        check_version("3.5.1")


def test_a_place_is_tried_without_a_trace(tmp_path, monkeypatch):
    before = tmp_path.stat().st_mtime_ns
    assert check_place(tmp_path / "not" / "yet") == tmp_path
    assert tmp_path.stat().st_mtime_ns == before
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"/file is a file; name a directory"):
        check_place(tmp_path / "file" / "runs")
    with pytest.raises(
        UsageError, match=r"^runs cannot be kept in /proc/x: /proc cannot be written"
    ):
        check_place(Path("/proc/x"))
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(UsageError, match=r"/link is a link that leads nowhere; name a directory"):
        check_place(tmp_path / "link" / "runs")


def test_the_reason_is_the_telling_line_of_a_long_story():
    story = "An error occurred\n\tat x.y\nModuleNotFoundError: No module named 'snapline'\n\tat z"
    assert ready.reason(SnaplineError(story)) == "ModuleNotFoundError: No module named 'snapline'"
