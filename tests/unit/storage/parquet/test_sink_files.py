"""Parquet files of a sink: each published row once for a plain reader, whatever dies while it publishes."""

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pytest
from pyarrow import parquet

from snapline.batch import Batch
from snapline.errors import ObjectMissing, StoreUnavailable, UsageError
from snapline.ids import TaskId
from snapline.storage.api import Extent, Life
from snapline.storage.files import places, store
from snapline.storage.files.outlet import FileOutlet
from snapline.storage.parquet import sink_files
from snapline.storage.parquet.sink_files import (
    HIDDEN,
    ParquetOutlet,
    check_folder,
    claim_folder,
    release_folder,
    remove_drafts,
)

TASK, OTHER = TaskId("out/0"), TaskId("out/1")


class Killed(BaseException):
    """The process is gone, at this very place."""


@pytest.fixture
def place(tmp_path):
    claim_folder(tmp_path / "out", "a run")
    return tmp_path


def an_outlet(place):
    """As a process finds it that has just started."""
    return ParquetOutlet(FileOutlet(place / "run" / "output"), {"out": place / "out"})


def write(egress, *stops):
    """Rows up to each of these, with a checkpoint behind them."""
    for stop in stops:
        for first in range(egress.position, stop, 4):
            numbers = np.arange(first, min(stop, first + 4))
            egress.append(Batch.of(n=numbers, word=["x"] * len(numbers)))
        egress.cut()
    egress.sync()
    return egress


def seen(place):
    """What a plain reader of Parquet finds."""
    files = [path for path in (place / "out").iterdir() if path.name[0] not in "._"]
    return sorted(n for path in files for n in parquet.read_table(path)["n"].to_pylist())


def drafts(place):
    return sorted(path.name for path in (place / "out" / HIDDEN).glob("*.parquet"))


def test_rows_are_seen_once_they_are_published_in_files_that_are_whole(place):
    outlet = an_outlet(place)
    egress = write(outlet.open(Life(TASK, 1, 1), 0), 3, 10, 12)
    assert seen(place) == []
    assert outlet.publish(1, {TASK: Extent(egress.file, 0, 10)})
    assert seen(place) == list(range(10))
    assert outlet.publish(2, {TASK: Extent(egress.file, 10, 12)})
    assert seen(place) == list(range(12))
    names = sorted(path.name for path in (place / "out").glob("*.parquet"))
    assert names == [
        "part-000001-0-0-3.parquet",
        "part-000001-0-3-10.parquet",
        "part-000002-0-10-12.parquet",
    ]
    found = parquet.read_table(place / "out" / names[1])
    assert [str(field.type) for field in found.schema] == ["int64", "string"]


def test_numbers_that_mean_something_else_are_written_as_what_they_mean(place):
    meanings = {"out": {"day": "date", "price": "decimal(5,2)", "at": "timestamp_ms"}}
    output = FileOutlet(place / "run" / "output")
    outlet = ParquetOutlet(output, {"out": place / "out"}, meanings)
    egress = outlet.open(Life(TASK, 1, 1), 0)
    egress.append(Batch.of(n=[7], day=[1], price=[-105], at=[1_500]))
    egress.cut()
    egress.sync()
    assert outlet.publish(1, {TASK: Extent(egress.file, 0, 1)})
    [file] = (place / "out").glob("*.parquet")
    second = datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC)
    row = {"n": 7, "day": date(1970, 1, 2), "price": Decimal("-1.05"), "at": second}
    assert parquet.read_table(file).to_pylist() == [row]


def test_a_directory_that_is_released_can_be_claimed_again(place):
    release_folder(place / "out")
    assert list((place / "out").iterdir()) == []
    check_folder(place / "out", None)
    claim_folder(place / "out", "another run")


def test_a_manifest_without_rows_and_a_sink_without_a_folder_make_no_files(place):
    outlet = ParquetOutlet(FileOutlet(place / "run" / "output"), {"else": place / "out"})
    egress = write(outlet.open(Life(TASK, 1, 1), 0), 3)
    assert outlet.publish(1, {TASK: Extent(egress.file, 0, 3)})
    assert (seen(place), drafts(place)) == ([], [])
    outlet = an_outlet(place)
    assert outlet.publish(2, {TASK: Extent(egress.file, 3, 3)})
    assert outlet.last_published() == 2


def test_rows_that_follow_a_checkpoint_before_it_is_synced_are_not_in_its_draft(place):
    """The snapshot of a checkpoint may stay open while its task goes on."""
    outlet = an_outlet(place)
    egress = outlet.open(Life(TASK, 1, 1), 0)
    egress.append(Batch.of(n=[0, 1, 2]))
    egress.cut()
    egress.append(Batch.of(n=[3, 4]))
    egress.sync()
    assert outlet.publish(1, {TASK: Extent(egress.file, 0, 3)})
    assert seen(place) == [0, 1, 2]
    egress.cut()
    egress.sync()
    assert outlet.publish(2, {TASK: Extent(egress.file, 3, 5)})
    assert seen(place) == [0, 1, 2, 3, 4]


def test_what_a_rollback_took_back_and_what_a_zombie_writes_stays_hidden(place):
    outlet = an_outlet(place)
    dead = write(outlet.open(Life(TASK, 1, 1), 0), 4, 9)
    assert outlet.publish(1, {TASK: Extent(dead.file, 0, 4)})
    alive = write(outlet.open(Life(TASK, 2, 1), 4), 6)
    write(dead, 11)
    assert outlet.publish(2, {TASK: Extent(alive.file, 4, 6)})
    assert seen(place) == list(range(6))
    assert drafts(place) == ["out-0.e1.i1-4-9.parquet", "out-0.e1.i1-9-11.parquet"]
    remove_drafts(place / "out")
    assert (drafts(place), seen(place)) == ([], list(range(6)))
    check_folder(place / "out", "a run")


def test_a_draft_that_could_not_be_written_is_written_with_the_next_sync(place, monkeypatch):
    outlet = an_outlet(place)
    egress = outlet.open(Life(TASK, 1, 1), 0)
    egress.append(Batch.of(n=[0, 1]))
    egress.cut()
    with monkeypatch.context() as patch:
        patch.setattr(parquet, "write_table", _fail)
        with pytest.raises(StoreUnavailable, match=r"cannot write .*disk is full"):
            egress.sync()
    assert drafts(place) == []
    egress.append(Batch.of(n=[2]))
    egress.cut()
    egress.sync()
    assert outlet.publish(1, {TASK: Extent(egress.file, 0, 3)})
    assert seen(place) == [0, 1, 2]


def _fail(*_):
    raise OSError("the disk is full")


def kill_at(patch, step):
    """Let the process die at the n-th step of publishing, before or after it has happened; count them."""
    steps = []

    def deadly(call):
        def wrapped(*args, **kwargs):
            steps.append("before")
            if len(steps) == step:
                raise Killed
            answer = call(*args, **kwargs)
            steps.append("after")
            if len(steps) == step:
                raise Killed
            return answer

        return wrapped

    patch.setattr(sink_files, "_rename", deadly(sink_files._rename))
    patch.setattr(sink_files, "sync_directory", deadly(places.sync_directory))
    put = store.FileStore.put_if_absent
    patch.setattr(store.FileStore, "put_if_absent", deadly(put))
    return steps


@pytest.mark.parametrize("step", range(1, 16))
def test_a_driver_that_dies_at_any_step_of_publishing_is_made_good_by_the_next(
    place, monkeypatch, step
):
    outlet = an_outlet(place)
    tasks = {task: write(outlet.open(Life(task, 1, 1), 0), 3, 8) for task in (TASK, OTHER)}
    extents = {task: Extent(egress.file, 0, 8) for task, egress in tasks.items()}
    with monkeypatch.context() as patch:
        steps = kill_at(patch, step)
        try:
            outlet.publish(1, extents)
            assert (step, len(steps)) == (15, 14), "all steps were tried"
        except Killed:
            assert len(steps) == step
    assert an_outlet(place).publish(1, extents)  # the next driver does it again
    assert an_outlet(place).publish(1, extents)
    assert seen(place) == sorted([*range(8), *range(8)])
    assert drafts(place) == []


def test_two_drivers_that_publish_the_same_make_one_of_each_file(place, monkeypatch):
    outlet, other = an_outlet(place), an_outlet(place)
    egress = write(outlet.open(Life(TASK, 1, 1), 0), 3, 8)
    rename = sink_files._rename

    def late(*args):
        patch.setattr(sink_files, "_rename", rename)
        assert other.publish(1, {TASK: Extent(egress.file, 0, 8)})
        rename(*args)

    with monkeypatch.context() as patch:
        patch.setattr(sink_files, "_rename", late)
        assert outlet.publish(1, {TASK: Extent(egress.file, 0, 8)})
    assert seen(place) == list(range(8))


def test_a_number_that_is_taken_shows_nothing(place):
    outlet = an_outlet(place)
    egress = write(outlet.open(Life(TASK, 1, 1), 0), 3, 8)
    assert outlet.publish(1, {TASK: Extent(egress.file, 0, 3)})
    assert not an_outlet(place).publish(1, {TASK: Extent(egress.file, 0, 8)})
    assert seen(place) == [0, 1, 2]


def test_a_draft_that_is_gone_is_missed(place):
    outlet = an_outlet(place)
    egress = write(outlet.open(Life(TASK, 1, 1), 0), 3, 8)
    (place / "out" / HIDDEN / f"{egress.file}-3-8.parquet").unlink()
    with pytest.raises(ObjectMissing, match="the rows from 3 to 8 of part-000001-0 are gone"):
        outlet.publish(1, {TASK: Extent(egress.file, 0, 8)})


def test_a_directory_is_of_one_run(tmp_path):
    folder = tmp_path / "out"
    check_folder(folder, None)
    folder.mkdir()
    check_folder(folder, None)
    claim_folder(folder, "mine")
    check_folder(folder, "mine")
    with pytest.raises(UsageError, match="does not hold the output of this run"):
        check_folder(folder, "yours")
    with pytest.raises(UsageError, match="holds that of another run; name another directory"):
        check_folder(folder, None)
    with pytest.raises(UsageError, match="another run does so"):
        claim_folder(folder, "yours")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "part-1.parquet").touch()
    with pytest.raises(UsageError, match=r"full: it is not empty \(part-1\.parquet\)"):
        check_folder(tmp_path / "full", None)
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"output cannot be written to .*file: Not a directory"):
        check_folder(tmp_path / "file", None)


def test_a_sweep_deletes_drafts_of_past_epochs_unless_they_are_held(place):
    outlet = an_outlet(place)
    for epoch in (1, 2, 3):
        write(outlet.open(Life(TASK, epoch, 1), 0 if epoch == 1 else 4), 4, 8)
    places.make_draft(place / "out" / HIDDEN / "out-0.e1.i1-8-9.parquet")
    outlet.publish(1, {TASK: Extent("out-0.e1.i1", 0, 4)})
    outlet.sweep(3, {"out-0.e2.i1"}, written=False)
    left = sorted(path.name for path in (place / "out" / HIDDEN).iterdir())
    assert left == ["out-0.e2.i1-4-8.parquet", "out-0.e3.i1-4-8.parquet", "owner.json"]
    outlet.publish(2, {TASK: Extent("out-0.e2.i1", 4, 8)})
    assert seen(place) == list(range(8))
