"""Is this machine fit for a run? One check per thing that a run needs, each with what to do if not.

A check looks and reports; it never raises and changes nothing. The last one, which starts Spark and takes
seconds, is optional: it proves what the others only make likely.
"""

import os
import platform
import shutil
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from snapline.errors import NoJava, UsageError
from snapline.rundir.place import check_place
from snapline.spark.java import find_java

PYTHON_MIN = (3, 11)
PYSPARK_MAJOR = 4
CORES_MIN = 2
MEMORY_BYTES_MIN = 2 * 2**30
DISK_BYTES_MIN = 2**30


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that a run needs: what was found and, unless it is fine, what to do."""

    name: str
    ok: bool
    found: str
    advice: str = ""


def checks(runs: Path, try_spark: bool = False) -> list[Check]:
    """Make all checks; `runs` is where run directories go."""
    looks: list[Callable[[], Check]] = [
        check_python,
        check_java,
        check_pyspark,
        check_cores,
        check_memory,
        lambda: check_disk(runs),
        check_loopback,
    ]
    return [look() for look in (*looks, *([check_spark] if try_spark else []))]


def check_python() -> Check:
    """Check the version of Python: the interpreter that runs this also runs the slots."""
    return judged(
        "python",
        sys.version_info >= PYTHON_MIN,
        f"{platform.python_version()} ({sys.executable})",
        "Use Python {}.{} or newer.".format(*PYTHON_MIN),
    )


def check_java() -> Check:
    """Check that there is a Java for Spark."""
    try:
        java = find_java()
    except NoJava as error:
        return Check("java", False, "nothing", str(error))
    return Check("java", True, f"{java.version}, from {java.origin} ({java.executable})")


def check_pyspark() -> Check:
    """Check the Python package of Spark, which brings the Spark of our own sessions."""
    try:
        found = version("pyspark")
    except PackageNotFoundError:
        found = "nothing"
    fits = found.partition(".")[0] == str(PYSPARK_MAJOR)
    advice = f"Install pyspark {PYSPARK_MAJOR} into the environment of {sys.executable}."
    return judged("pyspark", fits, found, advice)


def check_cores() -> Check:
    """Check the number of cores: every slot and spare takes one, and the rest of Spark one more."""
    usable = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    advice = f"Give this machine or container {CORES_MIN} cores; with one, slots only take turns."
    return judged("cores", usable >= CORES_MIN, str(usable), advice)


def check_memory() -> Check:
    """Check the free memory: Spark takes about a gigabyte, and slots what their state needs."""
    available = memory_available()
    if available is None:
        return Check("memory", True, "unknown: this system does not tell")
    advice = f"Close other programs or add memory: a run needs {gigabytes(MEMORY_BYTES_MIN)} free."
    found = f"{gigabytes(available)} free"
    return judged("memory", available >= MEMORY_BYTES_MIN, found, advice)


def check_disk(runs: Path) -> Check:
    """Check that the run directory, where checkpoints and journals go, is writable and has space."""
    try:
        place = check_place(runs)
    except UsageError as error:
        return Check("disk", False, str(error), "Choose another run directory.")
    free = shutil.disk_usage(place).free
    advice = (
        f"Free some space there or choose another place: a run needs {gigabytes(DISK_BYTES_MIN)}."
    )
    return judged("disk", free >= DISK_BYTES_MIN, f"{gigabytes(free)} free in {place}", advice)


def check_loopback() -> Check:
    """Check that sockets of this machine can be connected: slots and coordinator talk over them."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = server.getsockname()
            with socket.create_connection(address, timeout=5), server.accept()[0]:
                return Check("loopback", True, "127.0.0.1 accepts connections")
    except OSError as error:
        advice = "Allow connections to 127.0.0.1: look at the firewall, sandbox or container."
        return Check("loopback", False, str(error), advice)


def check_spark() -> Check:
    """Start a Spark of our own and a slot in it that returns at once."""
    from snapline.spark.slot_jobs import SlotFailure, SlotJob, SlotJobs, own_session
    from snapline.spark.starting import stop_session

    failures: list[SlotFailure | None] = []

    def ended(job: SlotJob, failure: SlotFailure | None) -> None:
        failures.append(failure)

    try:
        spark = own_session(slots=1)
    except Exception as error:
        return Check("spark", False, str(error), "Mend what the other checks name, then try again.")
    try:
        SlotJobs(spark, trial, ended).launch("doctor").released.wait(120)
        found = f"a slot ran on Spark {spark.version}"
    finally:
        stop_session(spark)
    if failures == [None]:
        return Check("spark", True, found)
    story = str(failures[0]) if failures else "no slot has run within two minutes"
    return Check(
        "spark", False, story, "Set PYSPARK_PYTHON to a Python in which snapline is installed."
    )


def trial(_secret: bytes) -> None:
    """The body of the trial slot: it checks from inside a worker what a slot needs."""
    looked = check_loopback()
    if not looked.ok:
        raise OSError(looked.found)


def judged(name: str, ok: bool, found: str, advice: str) -> Check:
    """The result of a check, with advice only if it failed."""
    return Check(name, ok, found, "" if ok else advice)


def memory_available() -> int | None:
    """Bytes that programs can still take, or None where the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        kilobytes = next(line.split()[1] for line in lines if line.startswith("MemAvailable:"))
        return int(kilobytes) * 1024
    except (OSError, StopIteration):
        return None


def gigabytes(size: int) -> str:
    """A number of bytes as text, in gigabytes."""
    return f"{size / 2**30:.1f} GB"
