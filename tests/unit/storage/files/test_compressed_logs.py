"""Logs whose messages are compressed, all or some: what they hold, what they count, and damage to them."""

import numpy as np
import pytest

from snapline.batch import Batch
from snapline.core.messages import Message
from snapline.errors import ObjectDamaged
from snapline.storage.files.log import FileLogs, check_segment
from storage_harness import CHANNEL, life


def message(seq, epoch=1):
    return Message(
        CHANNEL, seq, epoch, Batch.of(n=np.full(100, 1000 * epoch + seq)), b"header", seq
    )


def write(directory, epoch, seqs, *, compress=True, close=True):
    log = FileLogs(directory).open(life(epoch), compress=compress)
    sizes = [log.append(message(seq, epoch)) for seq in seqs]
    log.sync()
    if close:
        log.close()
    return sizes


def read(directory, after, through):
    log = FileLogs(directory).open(life(99))
    try:
        return list(log.read(CHANNEL, after=after, through=through))
    finally:
        log.close()


def segment(directory, epoch):
    [path] = directory.glob(f"{life(epoch).name}.*.log")
    return path


@pytest.mark.parametrize("indexed", [True, False])
def test_a_log_may_be_compressed_in_part(tmp_path, indexed):
    write(tmp_path, 1, range(1, 6), compress=False)
    write(tmp_path, 2, range(4, 8), compress=True)
    write(tmp_path, 3, range(7, 9), compress=False)
    if not indexed:
        for path in tmp_path.glob("*.index"):
            path.unlink()
    lives = {1: 1, 2: 1, 3: 1, 4: 2, 5: 2, 6: 2, 7: 3, 8: 3}
    assert read(tmp_path, 0, 8) == [message(seq, epoch) for seq, epoch in lives.items()]


def test_what_is_counted_is_what_is_stored(tmp_path):
    plain = write(tmp_path / "plain", 1, range(1, 41), compress=False)
    small = write(tmp_path / "small", 1, range(1, 41))
    assert plain == [800 + len(b"header")] * 40
    stored = segment(tmp_path / "small", 1).stat().st_size
    mark = 8 + len(b"snapline: synced through") + 16
    around = 8 + 26 + len(CHANNEL)  # of each message: its frame, its numbers and its channel
    assert sum(small) + 40 * around + mark == stored
    assert stored * 3 < segment(tmp_path / "plain", 1).stat().st_size


def test_a_life_reads_what_it_has_compressed_and_not_yet_written_down(tmp_path):
    log = FileLogs(tmp_path).open(life(1), compress=True)
    log.append(message(1))
    assert list(log.read(CHANNEL, after=0, through=1)) == [message(1)]
    log.close()


def test_whichever_byte_is_damaged_nothing_wrong_is_ever_read(tmp_path):
    write(tmp_path, 1, [1, 2, 3], compress=False)
    write(tmp_path, 2, [2, 3])
    for path in tmp_path.glob("*.index"):
        path.unlink()
    path = segment(tmp_path, 2)
    whole = path.read_bytes()
    refused = 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            assert read(tmp_path, 1, 3) == [message(2, 2), message(3, 2)]
        except ObjectDamaged:
            refused += 1
    mark = 8 + len(b"snapline: synced through") + 16
    assert refused == len(whole) - mark


def test_whoever_verifies_a_line_finds_damage_to_a_compressed_segment(tmp_path):
    write(tmp_path, 1, [1, 2, 3])
    path = segment(tmp_path, 1)
    check_segment(path)
    data = path.read_bytes()
    path.write_bytes(data[:90] + bytes([data[90] ^ 1]) + data[91:])
    with pytest.raises(ObjectDamaged):
        check_segment(path)
