"""What is read of a run directory: times that mean something, tasks and channels, and no more than that."""

from snapline.core.events import SnapshotStored
from snapline.core.messages import CheckpointMeta
from snapline.ids import ChannelId, TaskId, first_checkpoint
from snapline.journal.codec import json_of
from snapline.journal.entry import COORDINATOR, Built, Handled, Happened
from snapline.journal.fault_happenings import ProcessKilled
from snapline.journal.happenings import JobRunning, LineDecided
from snapline.report.page.run_page import run_page
from snapline.report.run.reading import in_order, read_run
from snapline.report.run.topology import topology_of
from snapline.rundir.directory import RunDirectory
from snapline.rundir.journal_file import JournalFile
from snapline.rundir.results import VERSION
from snapline.runs.finished import reported

A, B = TaskId("a/0"), TaskId("b/1")
AB = ChannelId("a/0>b/1#left")
ONE = first_checkpoint(1)
BUILT = Built(600_000, COORDINATOR, 0, 0, "seed", None)
RUNNING = Happened(3_000, COORDINATOR, 1, JobRunning())
META = CheckpointMeta(A, ONE, sent={AB: 4}, epoch=1)
STORED = Handled(200_000, COORDINATOR, 1, 0, SnapshotStored(META), ())
LINE = Happened(250_000, COORDINATOR, 1, LineDecided(2, 1, {A: ONE, B: 0}))


def run_of(tmp_path, *entries):
    spec = {"flow": "q12", "protocol": "uncoordinated", "slots": 2}
    directory = RunDirectory.create(tmp_path, "q12", "uncoordinated", spec)
    journal = JournalFile(directory.path / "journal" / "driver-1.jsonl")
    for entry in entries:
        journal.add(entry)
    journal.close()
    return read_run(directory, {})


def test_what_was_written_before_input_was_due_is_not_later_than_what_follows():
    times = [entry.at_us for entry in in_order([BUILT, RUNNING, STORED, LINE])]
    assert times == [3_000, 3_000, 200_000, 250_000]


def test_the_first_checkpoints_are_not_those_of_an_earlier_coordinator(tmp_path):
    run = run_of(tmp_path, BUILT, RUNNING, STORED, LINE)
    assert [type(entry) for entry in run.entries] == [Built, Happened, Handled, Happened]
    (row,) = run.checkpoints
    assert (row.skipped, row.committed) == (False, True)
    assert run.end_s == 0.25


def test_a_run_that_has_not_begun_has_no_times(tmp_path):
    decided = Happened(9_000_000, COORDINATOR, 0, LineDecided(1, 1, {A: 0, B: 0}))
    run = run_of(tmp_path, BUILT, decided)
    assert run.end_s == 0
    assert run.topology is not None


def test_a_journal_that_is_deleted_while_all_are_read_is_not_missed(tmp_path):
    spec = {"flow": "q12", "protocol": "uncoordinated", "slots": 2}
    directory = RunDirectory.create(tmp_path, "q12", "uncoordinated", spec)
    for name in ("driver-1.jsonl", "slot-1.1.jsonl"):
        journal = JournalFile(directory.path / "journal" / name)
        journal.add(RUNNING)
        journal.close()
    gone = directory.path / "journal" / "slot-0.1.jsonl"
    gone.symlink_to("deleted")  # its name was seen, and there is no such file
    run = read_run(directory, {})
    assert (len(run.journal), run.gap) == (2, None)


def test_tasks_and_channels_are_found_in_the_journals():
    found = topology_of([LINE, STORED])
    assert found is not None
    assert found.tasks == (A, B)
    (channel,) = found.channels
    assert (channel.id, channel.source, channel.target, channel.port) == (AB, A, B, "left")
    assert topology_of([RUNNING]) is None


def test_a_run_of_another_system_is_read_from_what_was_seen_of_it(tmp_path):
    spec = {"flow": "sst", "system": "other", "faults": "kill driver at=1s"}
    directory = RunDirectory.create(tmp_path, "sst", "other", spec)
    events = [json_of(Happened(1_000_000, "other", 0, ProcessKilled("kill driver at=1s")))]
    result = {
        "version": VERSION,
        "kept": "no",
        "because": "lost",
        "metrics": {"lost": 1},
        "events": events,
    }
    directory.write("result.json", result)
    run = reported(directory)
    assert run.figures is None
    assert [entry.at_us for entry in run.entries] == [1_000_000]
    page = run_page([run])
    assert "other is killed (kill driver at=1s)" in page
    assert "--system other" in page
