"""What is looked at before a run: cores, sessions, places. Pure, or with a Spark that only answers."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

from snapline.errors import NoSpark, SnaplineError, UsageError
from snapline.rundir.place import check_place
from snapline.rundir.spec import Spec
from snapline.spark import ready
from snapline.spark.ready import check_cores, check_session, check_version, cores_of


@pytest.mark.parametrize(
    ("master", "cores"),
    [
        ("local", 1),
        ("local[3]", 3),
        ("local[*]", 8),
        ("local[3,4]", 3),
        ("local[*, 4]", 8),
        ("local-cluster[2,3,1024]", 6),
        ("yarn", None),
        ("spark://host:7077", None),
        ("k8s://https://host", None),
    ],
)
def test_the_cores_of_a_master(master, cores):
    assert cores_of(master, lambda: 8) == cores


def a_spark(master, cpus="1"):
    conf = {"spark.task.cpus": cpus}
    return SimpleNamespace(
        sparkContext=SimpleNamespace(master=master, getConf=lambda: SimpleNamespace(get=conf.get))
    )


@pytest.mark.parametrize(
    ("slots", "spares", "master", "cpus", "refused"),
    [
        (3, 0, "local[3]", "1", False),
        (3, 1, "local[3]", "1", True),
        (2, 0, "local", "1", True),
        (2, 0, "local[3]", "2", True),
        (4, 0, "local-cluster[2,2,512]", "1", False),
        (5, 0, "local-cluster[2,2,512]", "1", True),
        (500, 0, "yarn", "1", False),
    ],
)
def test_slots_that_can_never_have_a_core_are_refused(slots, spares, master, cpus, refused):
    spec = Spec("q12", slots=slots, spares=spares, oversubscribe=True)
    if not refused:
        check_cores(spec, a_spark(master, cpus))
        return
    with pytest.raises(
        UsageError, match=r"slots.* need a core each, and Spark with the master local"
    ):
        check_cores(spec, a_spark(master, cpus))


def test_far_more_slots_than_cores_have_to_be_asked_for(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    check_cores(Spec("q12", slots=31, spares=1), None)
    check_cores(Spec("q12", slots=500, oversubscribe=True), None)
    with pytest.raises(
        UsageError, match=r"^32 slots and 1 spare are too many for 2 cores: .*--overs"
    ):
        check_cores(Spec("q12", slots=32, spares=1), None)


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
