"""The cores that a run needs are counted against those that Spark can ever give it."""

import os
from types import SimpleNamespace

import pytest

from snapline.errors import UsageError
from snapline.rundir.spec import Spec
from snapline.spark.cores import CoreNeed, check_cores, holding, needs_of, tasks_at_once


@pytest.mark.parametrize(
    ("master", "settings", "tasks"),
    [
        ("local", {}, 1),
        ("local[3]", {}, 3),
        ("local[*]", {}, 8),
        ("local[3,4]", {}, 3),
        ("local[*, 4]", {"spark.task.cpus": "3"}, 2),
        ("local-cluster[2,3,1024]", {}, 6),
        ("local-cluster[2, 3, 1024]", {"spark.task.cpus": "2"}, 2),
        ("spark://host:7077", {}, None),
        ("spark://host:7077", {"spark.cores.max": "5", "spark.task.cpus": "2"}, 2),
        ("yarn", {}, None),
        ("k8s://https://host", {"spark.cores.max": "5"}, None),
    ],
)
def test_the_tasks_that_a_session_can_ever_run_at_once(master, settings, tasks):
    assert tasks_at_once(master, lambda name: settings.get(name, ""), lambda: 8) == tasks


def a_spark(master, cpus="1", application="one"):
    conf = {"spark.task.cpus": cpus}
    return SimpleNamespace(
        sparkContext=SimpleNamespace(
            master=master, applicationId=application, getConf=lambda: SimpleNamespace(get=conf.get)
        )
    )


def test_slots_and_spares_need_a_core_each_and_nothing_else_does():
    assert needs_of(Spec("q12", slots=3)) == [CoreNeed(3, "3 slots")]
    assert needs_of(Spec("q12", slots=1, spares=2)) == [
        CoreNeed(1, "1 slot"),
        CoreNeed(2, "2 spares"),
    ]


@pytest.mark.parametrize(
    ("slots", "spares", "master", "cpus", "refused"),
    [
        (3, 0, "local[3]", "1", False),
        (3, 1, "local[3]", "1", True),
        (2, 0, "local", "1", True),
        (2, 0, "local[3]", "2", True),
        (4, 0, "local-cluster[2,2,512]", "1", False),
        (5, 0, "local-cluster[2,2,512]", "1", True),
        (3, 0, "local-cluster[2,3,512]", "2", True),
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


def test_cores_that_another_run_of_the_session_holds_are_not_there():
    spec, spark = Spec("q12", slots=2), a_spark("local[3]")
    with holding(spark, Spec("q12", slots=1, spares=1)):
        with pytest.raises(UsageError) as refused:
            check_cores(spec, spark)
        check_cores(spec, a_spark("local[3]", application="another"))
    assert str(refused.value) == (
        "2 slots need a core each, and Spark with the master local[3] runs 3 tasks at once, 2 of them for "
        "other runs: ask for fewer, or give it local[5]"
    )
    check_cores(spec, spark)


def test_far_more_slots_than_cores_have_to_be_asked_for(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    check_cores(Spec("q12", slots=31, spares=1), None)
    check_cores(Spec("q12", slots=500, oversubscribe=True), None)
    with pytest.raises(
        UsageError, match=r"^32 slots and 1 spare are too many for 2 cores: .*--overs"
    ):
        check_cores(Spec("q12", slots=32, spares=1), None)
