"""Opening a log by its indexes: the same messages as by a scan, whatever became of the index."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapline.errors import ObjectDamaged, ObjectMissing
from snapline.storage.files import log
from snapline.storage.files.frames import scan
from snapline.storage.files.log import FileLogs
from snapline.storage.files.log_index import read_index
from storage_harness import CHANNEL, OTHER, life, message, seqs

STEPS = st.lists(
    st.sampled_from(["append", "append", "other", "sync", "begin", "finish", "flush", "next life"]),
    max_size=40,
)


def write_history(directory, steps, segment_bytes):
    """Do these steps; seqs go on from life to life, one step back where a life begins."""
    epoch, seq, pending = 1, {CHANNEL: 0, OTHER: 0}, []
    written = FileLogs(directory, segment_bytes).open(life(epoch))
    for step in steps:
        if step in ("append", "other"):
            channel = CHANNEL if step == "append" else OTHER
            seq[channel] += 1
            written.append(message(seq[channel], epoch, channel))
        elif step == "sync":
            written.sync()
        elif step == "begin":
            pending.append(written.start_sync())
            pending[-1].wait()
        elif step == "finish" and pending:
            pending.pop().finish()
        elif step == "flush":
            list(written.read(CHANNEL, after=seq[CHANNEL], through=seq[CHANNEL]))
        elif step == "next life":
            written.close()
            epoch, pending = epoch + 1, []
            seq = {name: max(0, last - 1) for name, last in seq.items()}
            written = FileLogs(directory, segment_bytes).open(life(epoch))
    written.close()


def found(directory):
    """All that a new life reads."""
    opened = FileLogs(directory).open(life(99))
    try:
        return {
            channel: seqs(readable(opened, channel, seq) for seq in range(1, 45))
            for channel in (CHANNEL, OTHER)
        }
    finally:
        opened.close()


def readable(opened, channel, seq):
    try:
        return next(opened.read(channel, after=seq - 1, through=seq))
    except ObjectMissing:
        return message(0, 0, channel)


@given(steps=STEPS, segment_bytes=st.sampled_from([150, 400, 64 << 20]))
def test_index_and_scan_find_the_same(tmp_path_factory, steps, segment_bytes):
    directory = tmp_path_factory.mktemp("logs")
    write_history(directory, steps, segment_bytes)
    indexed = found(directory)
    for path in directory.glob("*.index"):
        path.unlink()
    assert found(directory) == indexed


def test_an_index_cut_anywhere_or_damaged_changes_nothing(tmp_path):
    write_history(tmp_path, ["append", "other", "sync", "append", "sync", "append"], 64 << 20)
    expected = found(tmp_path)
    (index,) = tmp_path.glob("*.index")
    whole = index.read_bytes()
    for place in range(len(whole)):
        index.write_bytes(whole[:place])
        assert found(tmp_path) == expected
        index.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        assert found(tmp_path) == expected


def test_what_is_indexed_is_not_scanned(tmp_path, monkeypatch):
    write_history(tmp_path, ["append", "sync", "append", "sync", "append", "flush"], 64 << 20)
    (segment,) = tmp_path.glob("*.log")
    entries, through = read_index(segment, segment.stat().st_size)
    assert [entry[:3] for entry in entries] == [(CHANNEL, 1, 1), (CHANNEL, 2, 1)]
    scanned = []

    def spy(path, start, seed):
        scanned.append(start)
        return scan(path, start, seed)

    monkeypatch.setattr(log, "scan", spy)
    assert [seq for seq, _ in found(tmp_path)[CHANNEL]][:4] == [1, 2, 3, 0]
    assert scanned == [through] != [0]


def test_an_index_of_more_than_the_segment_holds_is_not_believed(tmp_path):
    write_history(tmp_path, ["append", "sync", "append", "sync"], 64 << 20)
    (segment,) = tmp_path.glob("*.log")
    whole = segment.read_bytes()
    for size in range(len(whole)):
        segment.write_bytes(whole[:size])
        known = [seq for seq, _ in found(tmp_path)[CHANNEL] if seq]
        assert known == list(range(1, len(known) + 1))
    assert known == [1, 2]


def test_what_was_appended_during_a_sync_is_not_in_the_index(tmp_path):
    write_history(tmp_path, ["append", "begin", "append", "finish"], 64 << 20)
    (segment,) = tmp_path.glob("*.log")
    entries, through = read_index(segment, segment.stat().st_size)
    assert [entry[1] for entry in entries] == [1]
    segment.write_bytes(segment.read_bytes()[: through + 20])
    assert [seq for seq, _ in found(tmp_path)[CHANNEL]][:2] == [1, 0]


def test_behind_a_gap_an_index_is_not_believed(tmp_path):
    write_history(tmp_path, ["append", "sync", "append", "sync"], 64 << 20)
    (index,) = tmp_path.glob("*.index")
    whole = index.read_bytes()
    index.write_bytes(whole[len(whole) // 2 :])  # two frames of one length
    assert [seq for seq, _ in found(tmp_path)[CHANNEL]][:3] == [1, 2, 0]


def test_whichever_byte_of_a_segment_is_damaged_nothing_wrong_is_read(tmp_path):
    """Epoch 1 logged the same numbers: what it wrote must not come back when epoch 2 is damaged."""
    write_history(tmp_path, ["append", "append", "append", "sync"], 64 << 20)
    again = FileLogs(tmp_path).open(life(2))
    for seq in (2, 3):
        again.append(message(seq, 2))
        again.sync()
    again.close()
    segment = tmp_path / f"{life(2).name}.000000.log"
    whole = segment.read_bytes()
    refused = 0
    for place in range(len(whole)):
        segment.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        opened = FileLogs(tmp_path).open(life(99))
        try:
            assert seqs(opened.read(CHANNEL, after=1, through=3)) == [(2, 2), (3, 2)]
        except ObjectDamaged:
            refused += 1
        finally:
            opened.close()
    marks = 2 * (8 + len(b"snapline: synced through") + 16)
    assert refused == len(whole) - marks


def test_pruning_deletes_the_index_with_its_segment(tmp_path):
    written = FileLogs(tmp_path, segment_bytes=150).open(life(1))
    for seq in range(1, 6):
        written.append(message(seq))
    written.sync()
    written.prune(CHANNEL, through=5)
    written.close()
    left = sorted(path.name.removeprefix(f"{life(1).name}.") for path in tmp_path.iterdir())
    assert left == ["000002.index", "000002.log"]  # to the last segment more may be appended


def test_an_index_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    written = FileLogs(tmp_path).open(life(1))
    written.append(message(1))
    written.sync()
    with monkeypatch.context() as broken:
        broken.setattr("snapline.storage.files.log_index.os.write", _no_space)
        written.append(message(2))
        written.sync()
    written.append(message(3))
    written.sync()
    written.close()
    assert [seq for seq, _ in found(tmp_path)[CHANNEL]][:4] == [1, 2, 3, 0]


def _no_space(*_):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("content", [b"", b"!" * 100])
def test_a_file_that_is_no_index_is_ignored(tmp_path, content):
    write_history(tmp_path, ["append", "sync"], 64 << 20)
    (index,) = tmp_path.glob("*.index")
    index.write_bytes(content)
    assert found(tmp_path)[CHANNEL][0] == (1, 1)
