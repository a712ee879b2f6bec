"""The table of checkpoints, read from the journals of a run directory."""

from snapline.core.effects import Rollback
from snapline.core.events import SnapshotStored, TasksLost
from snapline.core.messages import CheckpointMeta, RecoveryLine
from snapline.ids import TaskId, first_checkpoint
from snapline.journal.codec import lines
from snapline.journal.entry import COORDINATOR, Built, Handled
from snapline.metrics.checkpointing.history import COLUMNS
from snapline.rundir.directory import RunDirectory
from snapline.runs.tables import checkpoint_reading

A = TaskId("a/0")


def stored(at_us, epoch, number):
    meta = CheckpointMeta(A, first_checkpoint(epoch) + number, epoch=epoch, bytes=7)
    return Handled(at_us, COORDINATOR, epoch, 0, SnapshotStored(meta), ())


def rows_of(tmp_path, **journals):
    directory = RunDirectory.create(tmp_path, "f", "aligned", {"protocol": "aligned"})
    folder = directory.path / "journal"
    folder.mkdir()
    for name, entries in journals.items():
        (folder / f"driver-{name}.jsonl").write_text("".join(lines(entries)))
    reading = checkpoint_reading(directory)
    assert reading.schema == ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    (piece,) = reading.pieces
    (batch,) = reading.read(piece)
    assert batch.schema.names == list(COLUMNS)
    return [(row["epoch"], row["number"], row["skipped"]) for row in batch.to_pylist()]


def test_the_entries_of_a_driver_are_taken_in_its_order_and_not_by_their_times(tmp_path):
    """A driver starts its clock again when all slots first run: what was before may have later times."""
    built = Built(9_000_000, COORDINATOR, 0, 0, "seed", None)
    back = RecoveryLine({A: first_checkpoint(1)})
    entries = [
        built,
        stored(1_000, 1, 0),
        stored(2_000, 1, 1),
        Handled(3_000, COORDINATOR, 1, 0, TasksLost((A,)), (Rollback(back),)),
        stored(4_000, 2, 0),
    ]
    assert rows_of(tmp_path, x=entries) == [(1, 1, False), (1, 2, True), (2, 1, False)]


def test_a_driver_that_resumes_goes_on_where_the_one_before_it_ended(tmp_path):
    line = (CheckpointMeta(A, first_checkpoint(1), epoch=1),)
    first = [Built(0, COORDINATOR, 0, 0, "seed", None), stored(1_000, 1, 0), stored(2_000, 1, 1)]
    second = [Built(3_000, COORDINATOR, 1, 0, "seed", b"", line=line), stored(4_000, 2, 0)]
    expected = [(1, 1, False), (1, 2, True), (2, 1, False)]
    assert rows_of(tmp_path, x=second, z=first) == expected


def test_a_run_without_a_journal_has_no_rows(tmp_path):
    assert rows_of(tmp_path) == []
