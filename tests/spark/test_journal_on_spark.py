"""A real run's journal, fed back: fresh protocol objects that are told the same answer the same.

The run is broken by a kill, given up by its first driver and finished by a second one; its driver listens
at another address than usual, and the secret of its processes stands nowhere.
"""

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from run_helpers import assert_usable_and_empty, commits
from scripted_faults import PATIENT

from journal_feeder import Feeder
from snapline.core.events import MessageArrived
from snapline.ids import first_checkpoint
from snapline.journal.entry import COORDINATOR, Built, Entry, Handled, Happened, Stamped
from snapline.journal.fault_happenings import ProcessKilled
from snapline.journal.happenings import JobRunning
from snapline.judge.history import journal_entries
from snapline.rundir.directory import RunDirectory
from snapline.rundir.spec import Spec
from snapline.runs.run import resume, run
from snapline.runtime.driver.driver import Driver

pytestmark = pytest.mark.spark

ELSEWHERE = "127.0.0.2"


class Enough(Exception):
    """The first driver has done enough."""


class Impatient:
    """Watches until a line is committed after the kill, and raises then."""

    def __init__(self, drivers: list[Driver]) -> None:
        self.drivers = drivers

    def event(self, happened: Happened) -> None:
        if isinstance(happened.what, JobRunning):
            assert_reached_elsewhere_in_secret(self.drivers[-1])
        if commits(happened) and happened.epoch > 1:
            raise Enough

    def second(self, second: object) -> None:
        pass


@pytest.fixture
def drivers(monkeypatch) -> list[Driver]:
    """The drivers that have run, as they come."""
    seen: list[Driver] = []
    original = Driver.run

    def seen_to_run(driver: Driver) -> str | None:
        seen.append(driver)
        return original(driver)

    monkeypatch.setattr(Driver, "run", seen_to_run)
    return seen


def journals_of(directory: Path) -> dict[str, list[Entry]]:
    """The journal of each process."""
    found = {}
    for path in sorted((directory / "journal").iterdir()):
        found[path.stem] = journal_entries(RunDirectory(directory), path)
    return found


@pytest.mark.parametrize("protocol", ["aligned", "uncoordinated", "hmnr"])
def test_fresh_protocol_objects_answer_as_the_journal_of_a_real_run_says(
    spark, tmp_path, drivers, protocol
):
    spec = Spec(
        "q12",
        protocol=protocol,
        rate=200,
        duration_ms=4_000,
        interval_ms=300,
        faults="kill slot=1 at=1500ms",
        spares=1,
        journal="full",
        listen=ELSEWHERE,
    )

    with pytest.raises(Enough):
        run(spec, spark, runs=tmp_path, watcher=Impatient(drivers), timeouts=PATIENT)
    (directory,) = tmp_path.iterdir()
    finished = resume(directory.name, spark, runs=tmp_path, timeouts=PATIENT)
    assert finished.verdict.kept == "yes", finished.verdict
    assert_usable_and_empty(spark)

    journals = journals_of(directory)
    for name, entries in journals.items():
        assert list(Feeder(drivers[0].job).feed(entries)) == [], name
    assert_nothing_was_missing(journals)
    assert_spark_reads(spark, directory / "journal", journals)
    for path in directory.rglob("*.*"):
        content = path.read_bytes() if path.is_file() else b""
        assert not [driver for driver in drivers if tells(content, driver.secret)], path


def assert_reached_elsewhere_in_secret(driver: Driver) -> None:
    """Slots find the driver where it was told to listen, and nobody was told how on a command line."""
    assert driver.listener.address[0] == ELSEWHERE
    assert {member.hello.host for member in driver.roster.members.values()} == {"127.0.0.1"}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            known = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue  # it has ended, or it is somebody else's
        assert not tells(known, driver.secret), process


def tells(content: bytes, secret: bytes) -> bool:
    """Whether a secret stands in there, in one of the forms in which it might have been written."""
    return any(form in content for form in (secret, secret.hex().encode(), repr(secret).encode()))


def assert_nothing_was_missing(journals: dict[str, list[Entry]]) -> None:
    """Without messages, a kill and a second coordinator there would be little to compare."""
    entries = [entry for journal in journals.values() for entry in journal]
    taken = [e for e in entries if isinstance(e, Handled) and isinstance(e.event, MessageArrived)]
    assert len(taken) > 50
    assert len([entry for entry in entries if isinstance(entry, Stamped)]) > 50
    assert [
        e.actor for e in entries if isinstance(e, Happened) and isinstance(e.what, ProcessKilled)
    ] == ["slot/1"]
    assert any(isinstance(entry, Stamped) for entry in journals["slot-1.1"]), "who was killed"
    built = [entry for entry in entries if isinstance(entry, Built)]
    first, second = sorted((e for e in built if e.actor == COORDINATOR), key=lambda e: e.epoch)
    assert (first.epoch, first.memo, first.line) == (0, None, ())
    assert second.epoch > 1
    assert second.line, "it began at a line"
    tasks = [entry for entry in built if entry.actor != COORDINATOR]
    assert any(entry.memo is not None for entry in tasks)
    assert all(entry.first_checkpoint == first_checkpoint(entry.epoch) for entry in tasks)


def assert_spark_reads(
    spark: SparkSession, directory: Path, journals: dict[str, list[Entry]]
) -> None:
    """Every entry is a row."""
    rows = spark.read.json(str(directory)).where("type is not null").groupBy("type").count()
    counted = {row["type"]: row["count"] for row in rows.collect()}
    assert counted == Counter(type(e).__name__ for journal in journals.values() for e in journal)


def test_a_brief_journal_leaves_messages_out_and_nothing_else(spark, tmp_path):
    spec = Spec("counting", protocol="aligned", rate=100, duration_ms=1_500, interval_ms=300)
    finished = run(spec, spark, runs=tmp_path)
    entries = [e for journal in journals_of(finished.directory.path).values() for e in journal]
    events = {type(entry.event).__name__ for entry in entries if isinstance(entry, Handled)}
    assert {"Started", "MarkerArrived", "CommandArrived", "SnapshotStored"} <= events
    assert "MessageArrived" not in events
    assert not [entry for entry in entries if isinstance(entry, Stamped)]
