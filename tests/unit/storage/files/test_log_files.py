"""What a directory of segments may look like after a crash, and how damage is told from a torn tail.

The indexes are taken away where segments are damaged: what they change is in test_log_index.py.
"""

import pytest

from snapline.batch import Batch
from snapline.core.messages import Message
from snapline.errors import ObjectDamaged, ObjectMissing, StorageError, StoreUnavailable
from snapline.storage.files.log import FileLogs
from storage_harness import CHANNEL, OTHER, life, message, seqs, spy_on_fsync

TOGETHER = 32  # messages that are written down at once


def write(directory, lives, segment_bytes=64 << 20):
    """Write logs: for each life (epoch) the groups of messages between its syncs."""
    for epoch, groups in lives.items():
        log = FileLogs(directory, segment_bytes).open(life(epoch))
        for group in groups:
            for seq in group:
                log.append(message(seq, epoch))
            log.sync()
        log.close()
    forget_indexes(directory)


def forget_indexes(directory):
    for path in directory.glob("*.index"):
        path.unlink()


def read(directory, after, through):
    log = FileLogs(directory).open(life(99))
    try:
        return seqs(log.read(CHANNEL, after=after, through=through))
    finally:
        log.close()


def only_segment(directory, epoch):
    (path,) = directory.glob(f"{life(epoch).name}.*.log")
    return path


def test_a_segment_cut_anywhere_holds_a_prefix(tmp_path):
    write(tmp_path, {1: [[1, 2, 3]]})
    path = only_segment(tmp_path, 1)
    whole = path.read_bytes()
    held = []
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        known = next(n for n in (3, 2, 1, 0) if _readable(tmp_path, n))
        held.append(known)
        if known < 3:
            with pytest.raises(ObjectMissing):
                read(tmp_path, known, known + 1)
    assert held == sorted(held)
    assert (held[0], held[-1]) == (0, 3)


def _readable(directory, through):
    try:
        return len(read(directory, 0, through)) == through
    except ObjectMissing:
        return False


def test_a_life_goes_on_after_a_torn_tail(tmp_path):
    write(tmp_path, {1: [[1, 2, 3]]})
    path = only_segment(tmp_path, 1)
    path.write_bytes(path.read_bytes()[:-70])
    write(tmp_path, {2: [[3, 4]]})
    assert read(tmp_path, 0, 4) == [(1, 1), (2, 1), (3, 2), (4, 2)]


def test_whichever_byte_is_damaged_nothing_wrong_is_ever_read(tmp_path):
    """Epoch 1 logged the same numbers: what it wrote must not come back when epoch 2 is damaged."""
    write(tmp_path, {1: [[1, 2, 3]], 2: [[2], [3]]})
    path = only_segment(tmp_path, 2)
    whole = path.read_bytes()
    refused = 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            assert read(tmp_path, 1, 3) == [(2, 2), (3, 2)]
        except ObjectDamaged:
            refused += 1
    last_mark = 8 + len(b"snapline: synced through") + 16
    assert refused == len(whole) - last_mark


def test_a_page_of_zeros_in_the_unsynced_tail_is_no_damage(tmp_path):
    write(tmp_path, {1: [[1, 2]]})
    with only_segment(tmp_path, 1).open("ab") as file:
        file.write(bytes(4096))
    assert read(tmp_path, 0, 2) == [(1, 1), (2, 1)]
    with pytest.raises(ObjectMissing):
        read(tmp_path, 2, 3)


def test_damage_after_opening_is_found_when_it_is_read(tmp_path):
    write(tmp_path, {1: [[1]]})
    log = FileLogs(tmp_path).open(life(2))
    path = only_segment(tmp_path, 1)
    path.write_bytes(path.read_bytes()[:30] + b"!" + path.read_bytes()[31:])
    with pytest.raises(ObjectDamaged, match=f"byte 0 of {path}"):
        list(log.read(CHANNEL, after=0, through=1))
    log.close()


def test_new_epochs_are_not_held_up_by_old_damage(tmp_path):
    write(tmp_path, {1: [[1], [2]]})
    path = only_segment(tmp_path, 1)
    path.write_bytes(b"!" + path.read_bytes()[1:])
    write(tmp_path, {2: [[2, 3]]})
    assert read(tmp_path, 1, 3) == [(2, 2), (3, 2)]


def test_damage_to_the_log_of_one_task_is_no_damage_to_others(tmp_path):
    write(tmp_path, {1: [[1]]})
    other = FileLogs(tmp_path).open(life(2, operator="asks"))
    other.append(message(1, channel=OTHER))
    other.sync()
    other.close()
    path = tmp_path / f"{life(2, operator='asks').name}.000000.log"
    path.write_bytes(b"!" + path.read_bytes()[1:])
    assert read(tmp_path, 0, 1) == [(1, 1)]


def test_a_damaged_segment_is_kept_because_nobody_knows_what_it_held(tmp_path):
    write(tmp_path, {1: [[1, 2]], 2: [[2]]})
    path = only_segment(tmp_path, 2)
    path.write_bytes(b"!" + path.read_bytes()[1:])
    for _ in range(2):
        log = FileLogs(tmp_path).open(life(3))
        log.prune(CHANNEL, through=1)
        with pytest.raises(ObjectDamaged):
            log.read(CHANNEL, after=1, through=2)
        log.close()


def test_after_a_sync_every_segment_is_durable_and_so_are_their_names(tmp_path, monkeypatch):
    synced = spy_on_fsync(monkeypatch)
    write(tmp_path, {1: [range(1, 10)]}, segment_bytes=300)
    segments = list(tmp_path.iterdir())
    assert len(segments) > 2
    assert {path.stat().st_ino for path in (tmp_path, *segments)} <= synced


def test_a_full_segment_waits_for_the_next_sync(tmp_path, monkeypatch):
    synced = spy_on_fsync(monkeypatch)
    log = FileLogs(tmp_path, segment_bytes=300).open(life(1))
    for seq in range(1, 10):
        log.append(message(seq))
    segments = {path.stat().st_ino for path in tmp_path.iterdir()}
    assert len(segments) > 2
    assert not segments & synced
    sync = log.start_sync()
    log.append(message(10))
    assert not segments & synced
    sync.wait()
    assert segments <= synced
    sync.finish()
    log.close()
    forget_indexes(tmp_path)
    path = min(tmp_path.iterdir())
    path.write_bytes(b"!" + path.read_bytes()[1:])
    with pytest.raises(ObjectDamaged):  # each full segment has its mark
        read(tmp_path, 0, 1)


def test_a_segment_that_could_not_be_synced_fails_every_later_sync(tmp_path, monkeypatch):
    log = FileLogs(tmp_path, segment_bytes=300).open(life(1))
    for seq in range(1, 10):
        log.append(message(seq))
    with monkeypatch.context() as broken:
        broken.setattr("os.fsync", _no_space)
        with pytest.raises(StoreUnavailable, match="cannot sync"):
            log.start_sync().wait()
    log.append(message(10))
    with pytest.raises(StorageError, match="takes nothing more"):
        log.start_sync()
    log.close()


def test_messages_are_read_one_by_one(tmp_path):
    write(tmp_path, {1: [[1, 2, 3]]})
    log = FileLogs(tmp_path).open(life(2))
    found = log.read(CHANNEL, after=0, through=3)
    path = only_segment(tmp_path, 1)
    whole = path.read_bytes()
    third = whole.index(b"header", whole.index(b"header", whole.index(b"header") + 1) + 1)
    path.write_bytes(whole[:third] + b"!" + whole[third + 1 :])
    assert [next(found).seq, next(found).seq] == [1, 2]
    with pytest.raises(ObjectDamaged, match=str(path)):
        next(found)
    log.close()


def test_pruning_deletes_whole_segments_and_keeps_the_rest(tmp_path):
    log = FileLogs(tmp_path, segment_bytes=400).open(life(1))
    for seq in range(1, 41):
        log.append(message(seq))
        log.append(message(seq, channel=OTHER))
    log.sync()
    segments = len(list(tmp_path.glob("*.log")))
    assert segments > 10
    log.prune(CHANNEL, through=40)
    assert len(list(tmp_path.glob("*.log"))) == segments  # the other channel still needs them
    log.prune(OTHER, through=30)
    assert len(list(tmp_path.glob("*.log"))) <= segments // 4 + 1
    assert seqs(log.read(OTHER, after=30, through=40)) == [(seq, 1) for seq in range(31, 41)]
    log.close()


def test_a_life_that_is_opened_again_writes_new_segments(tmp_path):
    for seq in range(1, 4):
        log = FileLogs(tmp_path).open(life(1))
        log.append(message(seq))
        log.sync()
        if seq == 2:
            log.prune(CHANNEL, through=1)
        log.close()
    assert read(tmp_path, 1, 3) == [(2, 1), (3, 1)]


def test_an_old_life_never_deletes_what_a_later_life_writes(tmp_path):
    write(tmp_path, {2: [[1, 2]]})
    zombie = FileLogs(tmp_path).open(life(1))
    zombie.prune(CHANNEL, through=2)
    assert read(tmp_path, 0, 2) == [(1, 2), (2, 2)]


def test_large_messages_leave_the_process_before_the_sync(tmp_path):
    log = FileLogs(tmp_path).open(life(1))
    big = Message(CHANNEL, 1, 1, Batch.of(n=list(range(200_000))))
    log.append(big)
    assert only_segment(tmp_path, 1).stat().st_size > 1_600_000
    assert list(log.read(CHANNEL, after=0, through=1)) == [big]
    log.close()


def test_messages_are_written_down_together_and_whoever_reads_finds_all_of_them(tmp_path):
    log = FileLogs(tmp_path).open(life(1))
    for seq in range(1, TOGETHER):
        log.append(message(seq))
    assert list(tmp_path.iterdir()) == []
    log.append(message(TOGETHER))
    assert only_segment(tmp_path, 1).exists()
    log.append(message(TOGETHER + 1))
    expected = [(seq, 1) for seq in range(1, TOGETHER + 2)]
    assert seqs(log.read(CHANNEL, after=0, through=TOGETHER + 1)) == expected
    assert read(tmp_path, 0, TOGETHER + 1) == expected  # by another process, too
    log.close()


def test_what_waits_to_be_written_down_cannot_be_changed(tmp_path):
    log = FileLogs(tmp_path).open(life(1))
    batch = Batch.of(n=[1, 2], name=["a", "b"])
    log.append(Message(CHANNEL, 1, 1, batch))
    for array in (batch["n"], batch["name"].offsets, batch["name"].values):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7
    log.close()


def test_a_message_that_could_not_be_written_down_is_not_left_out_of_a_sync(tmp_path, monkeypatch):
    log = FileLogs(tmp_path).open(life(1))
    log.append(message(1))
    log.append(message(2))
    with monkeypatch.context() as broken:
        broken.setattr("snapline.storage.files.frames.make_file", _no_file)
        with pytest.raises(StoreUnavailable, match="No space"):
            log.sync()
    log.sync()
    log.close()
    assert read(tmp_path, 0, 2) == [(1, 1), (2, 1)]


def _no_file(path, flags):
    raise OSError(28, "No space left on device")


def test_a_closed_log_takes_nothing_more(tmp_path):
    log = FileLogs(tmp_path).open(life(1))
    log.append(message(1))
    log.close()
    with pytest.raises(StorageError, match="closed"):
        log.sync()


def test_after_a_failed_sync_a_log_takes_nothing_more(tmp_path, monkeypatch):
    """A second fsync after a failed one may report success for pages that were dropped."""
    log = FileLogs(tmp_path).open(life(1))
    log.append(message(1))
    with monkeypatch.context() as broken:
        broken.setattr("os.fsync", _no_space)
        with pytest.raises(StoreUnavailable, match="cannot sync"):
            log.sync()
    with pytest.raises(StorageError, match="takes nothing more"):
        log.sync()
    log.close()


def _no_space(fd):
    raise OSError(28, "No space left on device")
