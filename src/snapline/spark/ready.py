"""Checks before slots are launched that a run is possible, so that a user hears at once if it is not.

A wrong argument is a UsageError; something that this machine or the user's Spark lacks is a NotStarted.
Both carry one sentence that says what to do.
"""

import socket
import sys
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from snapline.arguments import refused
from snapline.errors import NoSpark, NoWorkers, UsageError
from snapline.rundir.place import check_place
from snapline.rundir.spec import Spec
from snapline.spark.cores import check_cores
from snapline.spark.session_settings import check_settings
from snapline.spark.starting import Aside

SPARK_MAJOR = 4
NEEDED = ("snapline", "numpy", "xxhash", "pyarrow")
"""What the Python of Spark's workers must be able to import."""

ANSWER_S_MAX = 60.0

#: The question to a worker is an expression in a text: a worker without Snapline cannot load its functions.
_QUESTION = (
    "(__import__('sys').executable, [name for name in {needed!r} "
    "if __import__('importlib.util', fromlist=['util']).find_spec(name) is None])"
)
_asked: set[str] = set()  #: the Spark applications whose workers were found to be complete


def check_session(value: Any, name: str) -> SparkSession:
    """Return a session in which slots can run. Raises UsageError that says why they cannot."""
    if type(value).__module__.startswith("pyspark.sql.connect"):
        raise UsageError(
            f"{name} is a Spark Connect session, and slots need a classic one: make it with "
            "SparkSession.builder.master(...), without remote(...) and SPARK_REMOTE"
        )
    if not isinstance(value, SparkSession):
        raise refused(name, "a SparkSession", value)
    if value.sparkContext._jsc is None:
        raise UsageError(f"{name} is a session that was stopped: make a new one")
    check_version(value.version)
    return value


def check_version(version: str) -> None:
    """Refuse a Spark that is not supported."""
    if version.partition(".")[0] != str(SPARK_MAJOR):
        raise NoSpark(f"Spark {version} is not supported: Snapline needs Spark {SPARK_MAJOR}")


def check_listen(address: str) -> None:
    """Raise UsageError if this machine cannot listen on an address."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.create_server((address, 0), family=family) as server:
            found = ip_address(server.getsockname()[0])
    except OSError as error:
        raise UsageError(
            f"cannot listen on {address} ({error.strerror}): name an address of this machine (--listen)"
        ) from error
    if found.is_unspecified:
        raise UsageError(
            f"cannot listen on {address}: that is no address to tell others; name the one at which "
            "executors reach this machine (--listen)"
        )


def check_ready(spec: Spec, spark: SparkSession | None, place: Path) -> None:
    """Raise UsageError if a run cannot be as it was asked for; starts and writes nothing."""
    check_place(place)
    check_listen(spec.listen)
    check_cores(spec, spark)
    if spark is not None:
        check_settings(spark)


def check_sendable(job: object) -> None:
    """Raise UsageError if a job cannot be sent to slots: its code is pickled here, and unpickled there.

    Both are tried, because some things are pickled and never become what they were.
    """
    pickler: Any = cloudpickle  # it has no types
    try:
        pickler.loads(pickler.dumps(job))
    except Exception as error:
        raise UsageError(
            f"the dataflow cannot be sent to other processes ({type(error).__name__}: {error}): its "
            "functions and operators must not hold locks, files, sessions and the like; make them where "
            "they are used"
        ) from error


def check_workers(spark: SparkSession) -> None:
    """Raise NoWorkers if the Python of the workers lacks what a slot needs; asks with one small job."""
    application = str(spark.sparkContext.applicationId)
    if application in _asked:
        return
    question = _QUESTION.format(needed=NEEDED)
    asked = Aside(lambda: spark.sparkContext.parallelize([question], 1).map(eval).collect())
    if not asked.wait(ANSWER_S_MAX):
        return  # no core is free now; if that stays so, the run itself will say it
    how = (
        f"set PYSPARK_PYTHON={sys.executable} before the session is made, or ship Snapline with it "
        "(docs/clusters.md)"
    )
    try:
        ((executable, missing),) = asked.result()
    except Exception as error:
        raise NoWorkers(f"Spark's workers do not run Python ({reason(error)}): {how}") from error
    if missing:
        raise NoWorkers(f"Spark's workers run {executable}, which has no {missing[0]}: {how}")
    _asked.add(application)


def reason(error: Exception) -> str:
    """Of a long error of Spark's the one line that says what is wrong."""
    story = str(error).strip().splitlines() or [type(error).__name__]
    signs = ("Cannot run program", "PYTHON_VERSION_MISMATCH", "ModuleNotFoundError", "Error:")
    found = (line for sign in signs for line in story if sign in line)
    return next(found, story[0]).strip().rstrip(".")[:300]
