"""What a run left behind, read from outside: its journal, and the processes under a Spark."""

from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import SparkSession
from spark_slots import eventually, lives, parent_of

from snapline.journal.entry import Happened
from snapline.journal.happenings import Happening, LineDecided
from snapline.judge.history import journal_entries
from snapline.rundir.directory import RunDirectory


def happenings(journal: Path, files: str = "*") -> list[Happened]:
    """What happened, as all processes of a run wrote it down, in time.

    With `files`, only in those journals; for the directory of all runs, say `*/journal/driver-*`.
    """
    found: list[Happened] = []
    for path in journal.glob(f"{files}.jsonl"):
        entries = journal_entries(RunDirectory(path.parent.parent), path)
        found.extend(entry for entry in entries if isinstance(entry, Happened))
    return sorted(found, key=lambda entry: entry.at_us)


def only(found: Iterable[Happened], kind: type[Happening]) -> list[Happened]:
    return [entry for entry in found if isinstance(entry.what, kind)]


def commits(entry: Happened) -> bool:
    """Whether a line was committed; a decision that begins an epoch commits nothing new."""
    return isinstance(entry.what, LineDecided) and entry.what.epoch == entry.epoch


def slot_processes(ancestor: int) -> dict[int, int]:
    """The Python workers of the Spark under a process, each with the Java that it works for.

    Spark forks workers from a daemon, so both have the same command line, and only a worker has a parent
    with it, too.
    """
    workers = {}
    for pid in [int(path.name) for path in Path("/proc").glob("[0-9]*")]:
        try:
            daemon = parent_of(pid)
            if _is_python_of_spark(pid) and _is_python_of_spark(daemon):
                java = parent_of(daemon)
                if ancestor in (java, parent_of(java)):
                    workers[pid] = java
        except OSError:
            continue  # it has ended meanwhile
    return workers


def _is_python_of_spark(pid: int) -> bool:
    """Whether it runs a daemon's module; Java names one, too, inside an option."""
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return b"pyspark.daemon" in words or b"snapline.spark.daemon" in words


def assert_usable_and_empty(spark: SparkSession) -> None:
    """The session works as before, and no slot is left in it."""
    assert spark.range(10).count() == 10
    java = spark.sparkContext._gateway.proc.pid
    eventually(lambda: not slot_processes(java), "the end of all slots")


def assert_dead(pids: Iterable[int]) -> None:
    for pid in pids:
        eventually(lambda pid=pid: not lives(pid), f"the end of process {pid}")
