"""Slots as real Spark jobs: killed, stopped, cancelled, and always replaced."""

import os
import signal
import threading
import time
from functools import partial

import pytest
from spark_slots import Slots, eventually, lives, sleeper

from snapline.errors import SnaplineError, UsageError
from snapline.spark.slot_jobs import JobEnding, SlotJobs, available_slots, own_session

pytestmark = pytest.mark.spark


@pytest.fixture
def slots(spark, tmp_path):
    """Jobs that sleep; after the test they are gone, whatever it did."""
    slots = Slots(spark, tmp_path, sleeper(tmp_path))
    yield slots
    assert not slots.jobs.stop()
    eventually(lambda: not any(map(lives, slots.pids())), "the end of all processes")


def test_a_killed_slot_is_noticed_and_replaced_and_the_other_never_knows(slots):
    bystander, bystander_pid = slots.launch("bystander")
    job, pid = slots.launch("victim")
    for _ in range(5):
        os.kill(pid, signal.SIGKILL)
        assert job.ended.wait(60)
        eventually(lambda job=job: job in slots.ends, "the callback")
        assert slots.ends[job].ending is JobEnding.DIED
        job, pid = slots.launch("victim")
    assert lives(bystander_pid)
    assert bystander not in slots.ends


def test_cancelling_a_stopped_slot_frees_its_core(spark, slots):
    launched = [slots.launch(f"slot {n}") for n in range(available_slots(spark))]
    job, pid = launched[0]
    os.kill(pid, signal.SIGSTOP)
    waiting, before = slots.jobs.launch("replacement"), slots.pids()
    slots.jobs.cancel(job)
    assert lives(slots.next_pid(before))
    assert not lives(pid)
    assert slots.ends[job].ending is JobEnding.CANCELLED
    assert len(slots.ends) == 1, "only that one has ended"
    assert not waiting.ended.is_set()


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.05])
def test_a_job_cancelled_while_it_is_on_its_way_leaves_nothing_behind(slots, delay):
    jobs = [slots.jobs.launch(f"slot {n}") for n in range(3)]
    for job in jobs:
        time.sleep(delay)
        slots.jobs.cancel(job)
    for job in jobs:
        assert job.released.wait(60)
        assert slots.ends[job].ending is JobEnding.CANCELLED
    eventually(lambda: not any(map(lives, slots.pids())), "the end of all processes")


def test_stop_leaves_no_process_and_a_session_that_works(spark, slots):
    slots.launch("one")
    slots.launch("two")
    slots.jobs.launch("three")
    assert slots.jobs.stop() == []
    eventually(lambda: not any(map(lives, slots.pids())), "the end of all processes")
    assert len(slots.ends) == 3
    assert spark.range(10).count() == 10
    with pytest.raises(SnaplineError, match="stopped"):
        slots.jobs.launch("four")


def test_a_slot_that_returns_ends_well_and_takes_its_process_along(spark, tmp_path):
    slots = Slots(spark, tmp_path, sleeper(tmp_path, seconds=0.1))
    job, pid = slots.launch("short")
    assert job.released.wait(60)
    assert slots.ends == {job: None}
    eventually(lambda: not lives(pid), "the end of the process")


def test_a_slot_that_raises_tells_where(spark, tmp_path):
    slots = Slots(spark, tmp_path, lambda _secret: int("seven"))
    job = slots.jobs.launch("wrong")
    assert job.released.wait(60)
    assert slots.ends[job].ending is JobEnding.RAISED
    assert slots.ends[job].story.endswith(
        "ValueError: invalid literal for int() with base 10: 'seven'"
    )


def test_code_that_cannot_travel_is_refused_before_anything_runs(spark):
    with pytest.raises(UsageError, match="cannot be sent"):
        SlotJobs(spark, partial(print, threading.Lock()), lambda job, failure: None)


def test_a_second_session_is_refused_and_the_first_tells_its_cores(spark):
    assert available_slots(spark) == 4
    with pytest.raises(UsageError, match="already"):
        own_session(1)


def test_java_has_room_for_the_code_of_many_runs(spark):
    """With fewer compilers it reserves little by default: full, it fails in the middle of a job."""
    beans = spark._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    rooms = {bean.getName(): bean.getUsage().getMax() for bean in beans}
    assert sum(size for name, size in rooms.items() if name.startswith("Code")) >= 200 << 20, rooms
