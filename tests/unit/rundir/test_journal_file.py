"""The journal of a process on a disk that takes nothing for a while, and in a run without an end."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

from snapline.journal.codec import read
from snapline.journal.entry import Happened
from snapline.journal.fault_happenings import CoordinatorKilled, ProcessKilled
from snapline.journal.happenings import JobRunning, JobStopped, LineDecided, SlotLost
from snapline.judge.history import driver_entries, history_of
from snapline.rundir import past, tidying
from snapline.rundir.directory import RunDirectory
from snapline.rundir.journal_file import JournalFile
from snapline.rundir.past import evidence_of
from snapline.runs.supervise import deaths


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """The kernel refuses to make files larger."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_a_full_disk_does_not_take_is_written_later_and_in_order(tmp_path):
    path = tmp_path / "journal" / "slot-0.1.jsonl"
    journal = JournalFile(path)
    entries = [Happened(n, "slot/0", 1, JobStopped("x" * 50)) for n in range(30)]
    for number, entry in enumerate(entries):
        journal.add(entry)
        if number % 10 == 9:
            with files_of_at_most(50 * number):  # in the middle of an entry
                journal.flush()
            assert path.stat().st_size == 50 * number
    journal.close()
    with path.open() as lines:
        assert list(read(lines)) == entries


KILL = "kill slot=1 at=1s"


def entries(lives: int) -> list[Happened]:
    """What a driver writes while slot 1 is killed once, by a fault, and then dies again and again."""
    made = [Happened(1, "coordinator", 1, JobRunning())]
    for life in range(1, lives + 1):
        made += [
            Happened(1000 * life, "coordinator", life, LineDecided(2 * life - 1, life, {})),
            Happened(1000 * life + 1, "x", life, JobStopped("to be looked at" * 20)),
            Happened(1000 * life + 2, "coordinator", life, SlotLost(1, life)),
            Happened(1000 * life + 3, "coordinator", life, LineDecided(2 * life, life + 1, {})),
            Happened(1000 * life + 4, "coordinator", life + 1, JobRunning()),
        ]
    made.insert(3, Happened(1001, "slot/1", 1, ProcessKilled(KILL, pids=(7,))))
    return made


def written(run: RunDirectory, made: list[Happened], most: int | None) -> JournalFile:
    journal = JournalFile(run.path / "journal" / "driver-1.jsonl", most)
    for entry in made:
        journal.add(entry)
        journal.flush()
    journal.close()
    return journal


def size(run: RunDirectory) -> int:
    return sum(path.stat().st_size for path in (run.path / "journal").iterdir())


def a_run(where):
    return RunDirectory.create(where, "test", "aligned", {"protocol": "aligned"})


def test_a_bounded_journal_drops_what_only_serves_to_be_looked_at(tmp_path):
    run = a_run(tmp_path)
    made = entries(200)
    written(run, made, 20_000)
    assert size(run) < 20_000 * 5 // 4 + 200 * 300  # what is needed of each failure stays
    found, gap = driver_entries(run)
    assert gap is None
    needed = [entry for entry in made if not isinstance(entry.what, JobStopped | LineDecided)]
    assert [entry for entry in found if entry in needed] == needed
    assert sum(isinstance(entry.what, JobStopped) for entry in found) < 200


def test_a_verdict_learns_the_same_from_a_bounded_journal(tmp_path):
    bounded, whole = a_run(tmp_path), a_run(tmp_path)
    written(bounded, entries(200), 20_000)
    written(whole, entries(200), None)
    assert size(bounded) < size(whole)
    assert history_of(bounded, KILL) == history_of(whole, KILL)
    assert history_of(bounded, KILL).strikes[0].struck
    assert evidence_of(bounded) == evidence_of(whole)
    assert evidence_of(bounded).number == 400


def test_a_driver_that_died_before_it_dropped_a_segment_is_understood(tmp_path, monkeypatch):
    run = a_run(tmp_path)
    made = [*entries(40), Happened(10**6, "coordinator", 1, CoordinatorKilled("kill driver at=1s"))]
    monkeypatch.setattr("pathlib.Path.unlink", lambda path, missing_ok=False: None)
    written(run, made, 4_000)
    found, _ = driver_entries(run)
    assert sorted(map(str, found)) == sorted(map(str, made))
    assert len(deaths(run)) == 1


def test_the_last_decision_is_found_from_the_end_of_a_journal(tmp_path, monkeypatch):
    run = a_run(tmp_path)
    made = entries(5)
    written(run, made, None)
    path = run.path / "journal" / "driver-1.jsonl"
    for block in (1, 7, 100, 1 << 16):
        monkeypatch.setattr("snapline.rundir.past._BLOCK_BYTES", block)
        assert evidence_of(run).number == 10
    with path.open("ab") as file:
        file.write(b'{"type":"Happened","what":{"type":"LineDecided","number":99')  # cut by a kill
    assert evidence_of(run).number == 10
    path.write_bytes(b"")
    assert evidence_of(run).number == 0


def test_a_resume_reads_only_the_end_of_a_long_journal(tmp_path, monkeypatch):
    run = a_run(tmp_path)
    written(run, entries(300), None)
    monkeypatch.setattr("snapline.rundir.past._BLOCK_BYTES", 1_000)
    looked_at = []
    decided = past._decided
    monkeypatch.setattr(past, "_decided", lambda line: (looked_at.append(line), decided(line))[1])
    assert evidence_of(run).number == 600
    assert len(looked_at) < 10


def test_journals_of_dead_slots_go_and_those_of_the_living_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(tidying, "FILES_MAX", 3)
    run = a_run(tmp_path)
    (run.path / "journal").mkdir()
    run.errors.mkdir()
    for number in range(1, 8):
        for path in (
            run.path / "journal" / f"slot-1.{number}.jsonl",
            run.errors / f"slot-1.{number}.txt",
        ):
            path.write_text("x" * 100)
            os.utime(path, (number, number))
    (run.path / "journal" / "slot-0.1.jsonl").write_text("x" * 1000)
    (run.path / "journal" / "slot-0.1.2.jsonl").write_text("x" * 1000)
    (run.path / "journal" / "driver-1.jsonl").write_text("x" * 1000)
    tidying.tidy(run, {"slot-0.1", "slot-1.1"}, 250)
    left = sorted(path.name for path in (run.path / "journal").iterdir())
    assert left == [
        "driver-1.jsonl",
        "slot-0.1.2.jsonl",
        "slot-0.1.jsonl",
        "slot-1.1.jsonl",
        "slot-1.6.jsonl",
        "slot-1.7.jsonl",
    ]
    assert sorted(path.name for path in run.errors.iterdir()) == ["slot-1.6.txt", "slot-1.7.txt"]
