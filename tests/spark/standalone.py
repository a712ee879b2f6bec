"""A standalone cluster of Spark's on this machine, for tests: a master and two workers, as processes."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
from spark_slots import eventually

from snapline.spark.java import find_java, java_home

HOME = Path(pyspark.__file__).parent


def environment(**more: str) -> dict[str, str]:
    """As a user has it whose virtual environment is active."""
    java = {"JAVA_HOME": str(java_home(find_java())), "SPARK_LOCAL_IP": "127.0.0.1"}
    return {**os.environ, **java, "PYSPARK_PYTHON": sys.executable, **more}


@contextmanager
def daemon(place: Path, kind: str, *arguments: str, **more: str) -> Iterator[tuple[int, Path]]:
    """A master or a worker of a standalone cluster: its process, and what it logs."""
    log = place / f"{kind}-{len(list(place.iterdir()))}.log"
    command = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *arguments]
    places = {"SPARK_WORKER_DIR": str(place / "work"), "SPARK_LOG_DIR": str(place)}
    with log.open("w") as told:
        process = subprocess.Popen(
            command, env=environment(**places, **more), stderr=told, stdout=told
        )
    try:
        yield process.pid, log
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def cluster(place: Path, **more: str) -> Iterator[tuple[str, list[int]]]:
    """A master and two workers of two cores each, on loopback: its address, and their processes.

    `more` are variables of the environment of the workers.
    """
    here = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    with daemon(place, "master.Master", *here) as (_, log):
        found = re.compile(r"Starting Spark master at (spark://\S+)")
        eventually(lambda: found.search(log.read_text()), "the master")
        master = found.search(log.read_text())[1]
        room = ("--cores", "2", "--memory", "1g")
        with (
            daemon(place, "worker.Worker", *here, *room, master, **more) as (one, _),
            daemon(place, "worker.Worker", *here, *room, master, **more) as (two, _),
        ):
            eventually(lambda: log.read_text().count("Registering worker") == 2, "two workers")
            yield master, [one, two]
