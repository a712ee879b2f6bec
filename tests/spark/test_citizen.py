"""Slots as guests of a session: what Spark's pages show of them, and how they get a core beside others."""

import os
import signal
import time

import pytest
from scripted_faults import PATIENT, Script, Step, committed, kill
from spark_slots import Slots, eventually, sleeper

from held_input import Hold
from snapline.rundir.spec import Spec
from snapline.runs.run import run
from snapline.spark.pool import POOL, add_pool
from snapline.spark.starting import Aside

pytestmark = pytest.mark.spark

IDLE = "spark.sql.execution.pyspark.udf"


@pytest.fixture
def slots(spark, tmp_path):
    """Jobs that sleep; after the test they are gone, whatever it did."""
    slots = Slots(spark, tmp_path, sleeper(tmp_path))
    yield slots
    assert not slots.jobs.stop()


def rows_shown(spark):
    """What Spark's page of the newest query says, which it learns from heartbeats: rows by operator."""
    store = spark._jsparkSession.sharedState().statusStore()
    query = store.executionsList().last().executionId()
    values = store.executionMetrics(query)
    shown = {}
    nodes = store.planGraph(query).allNodes()
    for node in [nodes.apply(n) for n in range(nodes.size())]:
        metrics = node.metrics()
        for metric in [metrics.apply(n) for n in range(metrics.size())]:
            value = values.get(metric.accumulatorId())
            if metric.name() == "number of output rows" and value.isDefined():
                shown[node.name()] = int(value.get().replace(",", ""))
    return shown


def test_the_rows_of_a_slot_are_shown_while_it_runs_and_reach_nobody(spark, slots):
    job, _ = slots.launch("shown")
    eventually(lambda: rows_shown(spark).get("MapInArrow", 0) >= 2, "a row for every second")
    assert not job.ended.is_set()
    assert rows_shown(spark).get("Filter", 0) == 0, "none of them is kept"


def test_no_time_out_for_workers_that_return_nothing_kills_a_healthy_slot(spark, tmp_path):
    spark.conf.set(f"{IDLE}.idleTimeoutSeconds", "5")
    spark.conf.set(f"{IDLE}.killOnIdleTimeout", "true")
    try:
        slots = Slots(spark, tmp_path, sleeper(tmp_path, seconds=8))
        job, _ = slots.launch("healthy")
        assert job.released.wait(60)
    finally:
        spark.conf.unset(f"{IDLE}.idleTimeoutSeconds")
        spark.conf.unset(f"{IDLE}.killOnIdleTimeout")
    assert slots.ends == {job: None}


def test_beside_a_job_of_many_short_tasks_a_killed_slot_is_back_before_they_have_all_started(
    spark, slots, tmp_path_factory
):
    """Even if that job's pool has a share of its own, larger than there are cores."""
    begun = tmp_path_factory.mktemp("beside")
    context = spark.sparkContext

    def short(number):
        (begun / str(number)).touch()
        time.sleep(0.1)

    def work():
        context.addJobTag("beside")
        context.setLocalProperty("spark.scheduler.pool", "greedy")
        context.parallelize(range(1_000), 1_000).foreach(short)

    add_pool(context, "greedy", min_share=100)
    job, pid = slots.launch("victim")
    beside = Aside(work)
    eventually(lambda: any(begun.iterdir()), "the first short task")
    before = slots.pids()
    os.kill(pid, signal.SIGKILL)
    assert job.ended.wait(60)
    slots.jobs.launch("replacement")
    slots.next_pid(before)
    assert len(list(begun.iterdir())) < 1_000, (
        "the slot came before tasks that had waited for longer"
    )
    context.cancelJobsWithTag("beside")
    assert beside.wait(60)


def test_the_pool_of_slots_comes_first_and_is_made_once(spark, slots, tmp_path):
    Slots(spark, tmp_path, sleeper(tmp_path))
    pools = spark.sparkContext._jsc.sc().getAllPools()
    found = [pools.apply(n) for n in range(pools.size())]
    assert [pool.minShare() > 1_000 for pool in found if pool.name() == POOL] == [True]


def names_of_jobs(spark):
    """How the jobs of a session are called in Spark's pages, the oldest first."""
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    described = {jobs.apply(n).jobId(): jobs.apply(n).description() for n in range(jobs.size())}
    return [described[job].get() for job in sorted(described) if described[job].isDefined()]


def test_the_jobs_of_slots_are_called_after_flow_slot_and_epoch(spark, tmp_path, monkeypatch):
    before = len(names_of_jobs(spark))
    script = Script([Step(committed, kill(1))], Hold(tmp_path))
    script.install(monkeypatch)
    spec = Spec("q12", rate=500, duration_ms=2_000, interval_ms=300)
    assert run(spec, spark, runs=tmp_path, timeouts=PATIENT).verdict.kept == "yes"
    assert sorted(name for name in names_of_jobs(spark)[before:] if name.startswith("q12/")) == [
        "q12/slot 0/epoch 1",
        "q12/slot 1/epoch 1",
        "q12/slot 1/epoch 2",
    ]
