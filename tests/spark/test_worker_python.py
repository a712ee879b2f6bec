"""A session of the user whose workers have no Snapline: said in one sentence, and nothing is written."""

import os
import subprocess
import sys
import venv

import pytest

from snapline.spark.java import find_java, java_home

pytestmark = pytest.mark.spark

PROGRAM = """
from pyspark.sql import SparkSession
import snapline as sl

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
for slots in (3, 1):
    try:
        sl.run("q12", spark, slots=slots, duration="1s")
    except sl.SnaplineError as error:
        print(type(error).__name__, error)
spark.stop()
try:
    sl.run("q12", spark, slots=1)
except sl.SnaplineError as error:
    print(type(error).__name__, error)
"""


def test_what_the_users_session_lacks_is_said_in_one_sentence(tmp_path):
    venv.create(tmp_path / "bare", with_pip=False)
    bare = tmp_path / "bare" / "bin" / "python"
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": str(bare),
        "JAVA_HOME": str(java_home(find_java())),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ran.stdout.splitlines() == [
        "UsageError 3 slots need a core each, and Spark with the master local[2] runs 2 tasks at once: "
        "ask for fewer, or give it local[4]",
        f"NoWorkers Spark's workers run {bare}, which has no snapline: set "
        f"PYSPARK_PYTHON={sys.executable} before the session is made, or ship Snapline with it "
        "(docs/clusters.md)",
        "UsageError spark is a session that was stopped: make a new one",
    ], ran.stderr
    assert not (tmp_path / "runs").exists()
