"""What every egress and every outlet promises."""

import pytest

from snapline.batch import Batch
from snapline.errors import ObjectDamaged, ObjectMissing, StorageError
from snapline.ids import task_id
from snapline.storage.api import Extent, rows_of
from snapline.storage.files.outlet import FileOutlet
from snapline.storage.files.output import FileOutput
from snapline.storage.memory_output import MemoryOutlet
from storage_harness import life, race, spy_on_fsync

SINK = task_id("out", 0)
OTHER = task_id("out", 1)


def sink(epoch=1):
    return life(epoch, operator="out")


def rows(first, last):
    return Batch.of(n=list(range(first, last)))


def values(batches):
    return [n for batch in batches for n in batch["n"].tolist()]


def committed(outlet, *tasks):
    return rows_of(outlet.reader, tasks, "committed")


def uncommitted(outlet, *tasks):
    return rows_of(outlet.reader, tasks, "uncommitted")


def write(outlet, epoch, position, *bounds):
    """Open the egress of an epoch and append rows position..bounds[0], ..., synced."""
    egress = outlet.open(sink(epoch), position)
    for stop in bounds:
        egress.append(rows(egress.position, stop))
    egress.sync()
    return egress


def test_an_egress_counts_rows_over_the_whole_timeline(outlet):
    egress = outlet.open(sink(3), 100)
    assert (egress.file, egress.position) == ("out-0.e3.i3", 100)
    egress.append(rows(100, 107))
    egress.append(rows(0, 0))
    egress.append(rows(107, 110))
    assert egress.position == 110


def test_nothing_is_committed_before_it_is_published(outlet):
    write(outlet, 1, 0, 3, 7)
    assert values(committed(outlet, SINK)) == []
    assert values(uncommitted(outlet, SINK)) == list(range(7))


def test_what_was_published_is_committed_in_order_and_no_more(outlet):
    file = write(outlet, 1, 0, 3, 7).file
    shared = outlet.shared
    assert shared.publish(1, {SINK: Extent(file, 0, 2)})
    assert values(committed(outlet, SINK)) == [0, 1]
    assert shared.publish(2, {SINK: Extent(file, 2, 5)})
    assert values(committed(outlet, SINK)) == [0, 1, 2, 3, 4]
    assert values(committed(outlet, OTHER)) == []


def test_a_manifest_covers_several_sinks_at_once(outlet):
    one = write(outlet, 1, 0, 3)
    other = outlet.open(life(1, operator="more"), 0)
    other.append(rows(50, 52))
    other.sync()
    more = task_id("more", 0)
    shared = outlet.shared
    assert shared.publish(1, {SINK: Extent(one.file, 0, 3), more: Extent(other.file, 0, 2)})
    assert values(committed(outlet, SINK)) == [0, 1, 2]
    assert values(committed(outlet, more)) == [50, 51]


def test_publishing_again_changes_nothing(outlet):
    file = write(outlet, 1, 0, 5).file
    for _ in range(3):
        assert outlet.shared.publish(1, {SINK: Extent(file, 0, 3)})
    shared = outlet.shared
    assert shared.publish(2, {SINK: Extent(file, 3, 5)})
    assert shared.publish(1, {SINK: Extent(file, 0, 3)})
    assert values(committed(outlet, SINK)) == list(range(5))


def test_a_number_is_given_to_one_manifest_only(outlet):
    file = write(outlet, 1, 0, 5).file
    shared = outlet.shared
    assert shared.publish(1, {SINK: Extent(file, 0, 3)})
    assert not shared.publish(1, {SINK: Extent(file, 0, 4)})
    assert not shared.publish(1, {})
    assert values(committed(outlet, SINK)) == [0, 1, 2]


def test_numbers_rise_but_may_leave_gaps(outlet):
    file = write(outlet, 1, 0, 5).file
    shared = outlet.shared
    assert shared.publish((1 << 32) + 1, {SINK: Extent(file, 0, 3)})
    assert shared.publish((2 << 32) + 1, {SINK: Extent(file, 3, 4)})
    with pytest.raises(StorageError, match="too late"):
        shared.publish((1 << 32) + 2, {SINK: Extent(file, 4, 5)})


@pytest.mark.parametrize(("start", "stop"), [(2, 4), (4, 5), (0, 4), (3, 2)])
def test_extents_continue_exactly_where_the_last_ended(outlet, start, stop):
    file = write(outlet, 1, 0, 5).file
    shared = outlet.shared
    assert shared.publish(1, {SINK: Extent(file, 0, 3)})
    with pytest.raises(StorageError, match="does not continue at row 3"):
        shared.publish(2, {SINK: Extent(file, start, stop)})
    assert shared.publish(2, {SINK: Extent(file, 3, 3)})
    assert values(committed(outlet, SINK)) == [0, 1, 2]


def test_what_is_not_synced_cannot_be_published(outlet):
    egress = write(outlet, 1, 0, 3)
    egress.append(rows(3, 5))
    shared = outlet.shared
    with pytest.raises(StorageError, match="synced only through 3"):
        shared.publish(1, {SINK: Extent(egress.file, 0, 5)})
    assert values(committed(outlet, SINK)) == []
    egress.sync()
    assert shared.publish(1, {SINK: Extent(egress.file, 0, 5)})
    assert values(committed(outlet, SINK)) == list(range(5))


def test_a_sync_in_the_background_saves_what_was_appended_before_it(outlet):
    egress = outlet.open(sink(1), 0)
    egress.append(rows(0, 3))
    sync = egress.start_sync()
    egress.append(rows(3, 5))
    sync.wait()
    sync.finish()
    assert egress.position == 5
    assert outlet.shared.publish(1, {SINK: Extent(egress.file, 0, 3)})
    late = egress.start_sync()
    late.wait()
    outlet.crash(sink(1))
    assert values(committed(outlet, SINK)) == [0, 1, 2]


def test_a_sync_in_memory_saves_no_more_than_what_was_appended_before_it():
    outlet = MemoryOutlet()
    egress = outlet.open(sink(1), 0)
    egress.append(rows(0, 3))
    sync = egress.start_sync()
    egress.append(rows(3, 5))
    sync.finish()
    assert outlet.synced(sink(1)) == 3
    late = egress.start_sync()
    outlet.crash(sink(1))
    late.finish()
    assert (outlet.synced(sink(1)), values(rows_of(outlet, [SINK], "uncommitted"))) == (
        3,
        [0, 1, 2],
    )


def test_what_is_flushed_can_be_read_by_others(outlet):
    egress = outlet.open(sink(1), 0)
    egress.append(rows(0, 3))
    egress.flush()
    assert values(uncommitted(outlet, SINK)) == [0, 1, 2]


def test_flushing_syncs_nothing(tmp_path, monkeypatch):
    egress = FileOutlet(tmp_path).open(sink(), 0)
    synced = spy_on_fsync(monkeypatch)
    egress.append(rows(0, 3))
    egress.flush()
    assert not synced
    egress.close()


def test_a_file_that_nobody_wrote_cannot_be_published(outlet):
    with pytest.raises(StorageError, match="no egress file"):
        outlet.shared.publish(1, {SINK: Extent("out-0.e9.i9", 0, 1)})


def test_rows_before_the_beginning_of_a_file_cannot_be_published(outlet):
    file = write(outlet, 1, 3, 5).file
    with pytest.raises(StorageError, match="begins before its file"):
        outlet.shared.publish(1, {SINK: Extent(file, 0, 5)})


def test_a_sink_without_rows_is_published_all_the_same(outlet):
    egress = outlet.open(sink(), 0)
    egress.sync()
    shared = outlet.shared
    assert shared.publish(1, {SINK: Extent(egress.file, 0, 0)})
    assert values(committed(outlet, SINK)) == []


def test_a_crash_takes_what_was_not_synced(outlet):
    egress = write(outlet, 1, 0, 3)
    egress.append(rows(3, 5))
    outlet.crash(sink(1))
    assert values(uncommitted(outlet, SINK)) == [0, 1, 2]


def test_a_dead_timeline_stays_uncommitted(outlet):
    """Epoch 1 wrote five rows, the line covers three; epoch 2 writes its own fourth."""
    first = write(outlet, 1, 0, 5).file
    shared = outlet.shared
    assert shared.publish(1, {SINK: Extent(first, 0, 3)})
    outlet.crash(sink(1))
    second = outlet.open(sink(2), 3)
    second.append(Batch.of(n=[33, 44]))
    second.sync()
    assert shared.publish(2, {SINK: Extent(second.file, 3, 5)})
    assert values(committed(outlet, SINK)) == [0, 1, 2, 33, 44]
    assert values(uncommitted(outlet, SINK)) == [0, 1, 2, 3, 4, 33, 44]


def test_a_zombie_writes_into_its_own_file_alone(outlet):
    zombie = write(outlet, 1, 0, 3)
    successor = write(outlet, 2, 0, 2)
    zombie.append(rows(3, 9))
    zombie.sync()
    shared = outlet.shared
    assert shared.publish(1, {SINK: Extent(successor.file, 0, 2)})
    assert values(committed(outlet, SINK)) == [0, 1]


def test_an_egress_is_opened_once(outlet):
    write(outlet, 1, 0, 3)
    with pytest.raises(StorageError, match="opened before"):
        outlet.open(sink(1), 3)


def test_another_process_reads_what_was_published(tmp_path):
    egress = FileOutlet(tmp_path).open(sink(), 0)
    egress.append(rows(0, 5))
    egress.sync()
    egress.close()
    assert FileOutlet(tmp_path).publish(7, {SINK: Extent(egress.file, 0, 4)})
    reader = FileOutput(tmp_path)
    assert values(rows_of(reader, [SINK], "committed")) == [0, 1, 2, 3]
    assert FileOutlet(tmp_path).publish(8, {SINK: Extent(egress.file, 4, 5)})
    assert values(rows_of(reader, [SINK], "committed")) == [0, 1, 2, 3, 4]


def test_a_reader_follows_a_file_that_grows(tmp_path):
    egress, reader = FileOutlet(tmp_path).open(sink(), 0), FileOutput(tmp_path)
    for stop in (2, 3, 7):
        egress.append(rows(egress.position, stop))
        egress.sync()
        assert values(rows_of(reader, [SINK], "uncommitted")) == list(range(stop))
    egress.close()


def test_what_is_published_is_durable_even_if_its_writer_could_not_say_so(tmp_path, monkeypatch):
    egress = FileOutlet(tmp_path).open(sink(), 0)
    egress.append(Batch.of(n=list(range(200_000))))  # too large to wait in memory for a sync
    egress.close()
    synced = spy_on_fsync(monkeypatch)
    assert FileOutlet(tmp_path).publish(1, {SINK: Extent(egress.file, 0, 5)})
    files = (tmp_path, tmp_path / f"{egress.file}.egress")
    assert {path.stat().st_ino for path in files} <= synced


@pytest.fixture
def published(tmp_path):
    egress = FileOutlet(tmp_path).open(sink(), 0)
    for stop in (3, 6):
        egress.append(rows(egress.position, stop))
        egress.sync()
    egress.close()
    assert FileOutlet(tmp_path).publish(1, {SINK: Extent(egress.file, 0, 6)})
    return tmp_path / f"{egress.file}.egress"


def test_damaged_output_is_never_read(published):
    whole = published.read_bytes()
    damaged = 0
    for place in range(len(whole)):
        published.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            read = rows_of(FileOutput(published.parent), [SINK], "committed")
            assert values(read) == list(range(6))
        except ObjectDamaged:
            damaged += 1
    assert damaged > len(whole) - 60


def test_damage_behind_what_was_read_before_is_told_from_a_torn_tail(published):
    whole = published.read_bytes()
    mark = b"snapline: synced through"
    second = whole.index(mark) + len(mark) + 16  # where the second frame begins
    published.write_bytes(whole[:second])
    reader = FileOutput(published.parent)
    with pytest.raises(ObjectMissing, match="at row 3"):
        list(rows_of(reader, [SINK], "committed"))
    published.write_bytes(whole[:second] + b"!" + whole[second + 1 :])
    with pytest.raises(ObjectDamaged, match=f"at byte {second}"):
        list(rows_of(reader, [SINK], "committed"))


def test_output_that_is_gone_is_said(published):
    published.write_bytes(published.read_bytes()[:20])
    with pytest.raises(ObjectMissing, match="ends before row 6, at row 0"):
        list(rows_of(FileOutput(published.parent), [SINK], "committed"))
    published.unlink()
    with pytest.raises(ObjectMissing):
        list(rows_of(FileOutput(published.parent), [SINK], "committed"))


def _publish(racer, directory):
    """Publish under other numbers than the others do, always from where the output now ends."""
    outlet, number, done = FileOutlet(directory), 0, []
    while number < 60:
        number += 1 + racer
        at = len(values(rows_of(FileOutput(directory), [SINK], "committed")))
        try:
            done.append(outlet.publish(number, {SINK: Extent("out-0.e1.i1", at, at + racer + 1)}))
        except StorageError:
            continue
    return sum(done)


def test_racing_publishers_never_publish_a_row_twice(tmp_path):
    egress = FileOutlet(tmp_path).open(sink(), 0)
    egress.append(rows(0, 500))
    egress.sync()
    egress.close()
    answers = race(_publish, tmp_path)
    committed = values(rows_of(FileOutput(tmp_path), [SINK], "committed"))
    assert committed == list(range(len(committed)))
    assert committed
    assert sum(answers) >= len(list((tmp_path / "manifests").iterdir())) > 0


def test_a_sweep_deletes_what_past_epochs_wrote_and_will_never_be_public(outlet):
    for epoch in (1, 2, 3, 4, 5):
        write(outlet, epoch, 0 if epoch == 1 else 4, 6)
    outlet.shared.publish(1, {SINK: Extent("out-0.e1.i1", 0, 4)})
    outlet.shared.sweep(5, {"out-0.e3.i3"}, written=False)
    assert len(values(uncommitted(outlet, SINK))) == 6 + 4 * 2
    outlet.shared.sweep(5, {"out-0.e3.i3"}, written=True)
    assert len(values(uncommitted(outlet, SINK))) == 6 + 2 * 2  # epochs 1, 3 and 5
    assert values(committed(outlet, SINK)) == [0, 1, 2, 3]
    assert outlet.shared.publish(2, {SINK: Extent("out-0.e3.i3", 4, 6)})
    assert values(committed(outlet, SINK)) == [0, 1, 2, 3, 4, 5]


def test_a_sweep_spares_files_whose_manifests_the_publisher_has_forgotten(outlet):
    write(outlet, 1, 0, 4)
    write(outlet, 2, 4, 6)
    shared = outlet.shared
    shared.publish(1, {SINK: Extent("out-0.e1.i1", 0, 4)})
    shared.publish(2, {SINK: Extent("out-0.e2.i2", 4, 6)})
    shared.compact(1)
    shared.sweep(3, (), written=True)
    assert values(committed(outlet, SINK)) == [0, 1, 2, 3, 4, 5]
