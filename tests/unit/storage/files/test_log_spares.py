"""Segments that are written again: whatever a crash leaves, nobody finds what an earlier segment held."""

import fcntl
import os
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapline.errors import ObjectDamaged, ObjectMissing, StoreUnavailable
from snapline.storage.codec import peek_message
from snapline.storage.files import places
from snapline.storage.files.frames import scan, walk
from snapline.storage.files.log import FileLogs, seed_of
from snapline.storage.files.places import open_shared
from storage_harness import CHANNEL, life, message, seqs

PAGE = 16  # of the disk of these tests: what a crash takes or leaves as a whole
SEGMENT_BYTES = 250  # three messages


def fill(log, first, last):
    for seq in range(first, last + 1):
        log.append(message(seq))


def write_again(directory):
    """A log whose three segments were pruned, and may be overwritten; 10 is its next message."""
    log = FileLogs(directory, SEGMENT_BYTES).open(life(1))
    fill(log, 1, 9)
    log.sync()
    log.prune(CHANNEL, through=9)
    log.sync()
    return log


def segments(directory):
    return sorted(directory.glob("*.log"))


def spares(directory):
    return sorted(directory.glob("*.spare"))


def found_in(path):
    """The numbers of the messages in a segment, and whether it is damaged."""
    found = scan(path, 0, seed_of(path))
    return [peek_message(payload)[1] for _, payload in found.frames], found.damaged


# What is kept, and what becomes of it.


def test_a_pruned_segment_is_written_again_under_a_new_name(tmp_path):
    log = write_again(tmp_path)
    kept = {path.stat().st_ino for path in spares(tmp_path)}
    assert (len(kept), segments(tmp_path)) == (3, [])
    fill(log, 10, 16)
    log.sync()
    assert {path.stat().st_ino for path in segments(tmp_path)} == kept
    assert spares(tmp_path) == []
    assert [found_in(path)[0] for path in segments(tmp_path)] == [[10, 11, 12], [13, 14, 15], [16]]
    assert seqs(log.read(CHANNEL, after=9, through=16)) == [(seq, 1) for seq in range(10, 17)]
    successor = FileLogs(tmp_path).open(life(2))
    assert seqs(successor.read(CHANNEL, after=9, through=16)) == [(s, 1) for s in range(10, 17)]
    for opened in (log, successor):
        opened.close()


def test_few_segments_are_kept_and_none_when_the_log_is_closed(tmp_path):
    log = FileLogs(tmp_path, SEGMENT_BYTES).open(life(1))
    for last in range(50, 500, 50):
        fill(log, last - 49, last)
        log.sync()
        log.prune(CHANNEL, through=last)
        assert 0 < len(spares(tmp_path)) <= 4
        assert len(list(tmp_path.iterdir())) <= 4 + 2
    log.close()
    assert not spares(tmp_path)


def test_a_log_that_nobody_holds_any_more_leaves_no_spares(tmp_path):
    write_again(tmp_path)
    assert not spares(tmp_path)


def test_a_spare_that_is_gone_is_done_without(tmp_path):
    log = write_again(tmp_path)
    for spare in spares(tmp_path):
        spare.unlink()
    fill(log, 10, 20)
    log.sync()
    assert seqs(log.read(CHANNEL, after=9, through=20)) == [(seq, 1) for seq in range(10, 21)]
    log.close()


def test_a_segment_that_is_there_is_not_replaced(tmp_path):
    log = write_again(tmp_path)
    taken = tmp_path / f"{life(1).name}.000003.log"
    taken.write_bytes(b"somebody else's")
    with pytest.raises(StoreUnavailable, match="File exists"):
        fill(log, 10, 10)
    assert taken.read_bytes() == b"somebody else's"
    log.close()


@pytest.mark.parametrize("call", ["rename", "link"])
def test_where_a_file_cannot_get_another_name_segments_are_new(tmp_path, monkeypatch, call):
    def refuse(*_, **__):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, call, refuse)
    log = write_again(tmp_path)
    fill(log, 10, 20)
    log.sync()
    log.prune(CHANNEL, through=15)
    assert seqs(log.read(CHANNEL, after=15, through=20)) == [(seq, 1) for seq in range(16, 21)]
    assert len(segments(tmp_path)) <= 3
    log.close()


# Other lives.


def leave_spares(directory, epoch):
    """What a killed process leaves."""
    path = directory / f"{life(epoch).name}.000000.spare"
    path.write_bytes(b"used")
    return path


def test_the_next_life_deletes_the_spares_of_the_dead_when_it_has_time(tmp_path):
    left, later = leave_spares(tmp_path, 1), leave_spares(tmp_path, 3)
    other = tmp_path / f"{life(1, operator='asks').name}.000000.spare"
    other.write_bytes(b"used")
    log = FileLogs(tmp_path).open(life(2))
    assert left.exists()
    log.prune(CHANNEL, through=1)
    assert not left.exists()
    assert later.exists()
    assert other.exists()
    log.close()


def test_only_segments_that_a_log_has_written_itself_are_written_again(tmp_path):
    log = FileLogs(tmp_path, SEGMENT_BYTES).open(life(1))
    fill(log, 1, 9)
    log.sync()
    log.close()
    for epoch in (1, 2):
        again = FileLogs(tmp_path, SEGMENT_BYTES).open(life(epoch))
        again.prune(CHANNEL, through=9 if epoch == 2 else 4)
        assert not spares(tmp_path)
        again.close()
    assert not segments(tmp_path)


def test_what_another_life_reads_is_not_overwritten(tmp_path):
    """The zombie prunes and goes on, while its successor is in the middle of a replay."""
    zombie = FileLogs(tmp_path, SEGMENT_BYTES).open(life(1))
    fill(zombie, 1, 9)
    zombie.sync()
    successor = FileLogs(tmp_path).open(life(2))
    replay = successor.read(CHANNEL, after=0, through=9)
    assert next(replay).seq == 1
    zombie.prune(CHANNEL, through=9)
    assert not spares(tmp_path)
    for last in range(20, 60, 10):
        fill(zombie, last - 9, last)
        zombie.sync()
    assert seqs(replay) == [(seq, 1) for seq in range(2, 10)]
    for log in (zombie, successor):
        log.close()


def test_what_is_pruned_while_it_is_opened_counts_as_pruned(tmp_path, monkeypatch):
    """The reader has opened the file, and not locked it yet."""
    log = FileLogs(tmp_path, SEGMENT_BYTES).open(life(1))
    fill(log, 1, 9)
    log.sync()
    lock = fcntl.flock

    def late(fd, how):
        monkeypatch.undo()
        log.prune(CHANNEL, through=9)
        lock(fd, how)

    path = segments(tmp_path)[0]
    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(FileNotFoundError):
        open_shared(path)
    assert spares(tmp_path)
    log.close()


def test_whoever_reads_a_segment_that_is_overwritten_finds_nothing_wrong(tmp_path):
    """A table of the log does not lock: it gets messages of the segment that it asked for, or fewer."""
    log = write_again(tmp_path)
    spare = spares(tmp_path)[-1]
    opened, seed = tmp_path / "opened", seed_of(spare.with_suffix(".log"))
    os.link(spare, opened)
    assert [peek_message(payload)[1] for payload in walk(opened, seed)] == [7, 8, 9]
    fill(log, 10, 10)
    log.sync()
    assert opened.samefile(segments(tmp_path)[0])
    assert list(walk(opened, seed)) == []
    log.close()


# Crashes.


class Disk:
    """Watches a directory, and knows what may be left of it if the machine fails.

    Names change in order, and are durable when the directory was synced. Of a file that page is durable
    which was there when it was last synced; of any later one nobody knows.
    """

    def __init__(self, directory):
        self.directory = directory
        self.files = {}  # by inode, open: a file that was deleted may come back
        self.synced = {}  # by inode: what is durable
        self.names = [{}]  # what the names were, since they were durable

    def look(self):
        names = {path.name: path.stat().st_ino for path in self.directory.iterdir()}
        for name, inode in names.items():
            if inode not in self.files:
                self.files[inode] = os.open(self.directory / name, os.O_RDONLY)
        if names != self.names[-1]:
            self.names.append(names)

    def watch(self, monkeypatch):
        """Look after every call that changes a name, and note what is synced."""
        for call in ("rename", "link", "unlink", "open"):
            monkeypatch.setattr(
                os, call, self._then(getattr(os, call), lambda *_, **__: self.look())
            )
        monkeypatch.setattr(os, "fsync", self._then(os.fsync, self._note))

    def _then(self, real, act):
        def called(*args, **kwargs):
            result = real(*args, **kwargs)
            if not self.busy:
                self.busy = True
                act(*args, **kwargs)
                self.busy = False
            return result

        return called

    busy = False

    def _note(self, fd):
        inode = os.fstat(fd).st_ino
        if inode == self.directory.stat().st_ino:
            self.names = self.names[-1:]
        else:
            self.synced[inode] = self._content(inode)

    def _content(self, inode):
        fd = self.files[inode]
        return os.pread(fd, os.fstat(fd).st_size, 0)

    def image(self, data, to):
        """One of the states in which the directory may be found."""
        for name, inode in data.draw(st.sampled_from(self.names), "names").items():
            old, new = self.synced.get(inode, b""), self._content(inode)
            if old != new:
                size = data.draw(st.sampled_from([len(new), max(len(old), len(new) // 2)]), "size")
                kept = bytearray(new[:size])
                changed = [
                    p for p in range(0, size, PAGE) if old[p : p + PAGE] != new[p : p + PAGE]
                ]
                for page in data.draw(st.sets(st.sampled_from(changed))) if changed else ():
                    before = old[page : page + PAGE].ljust(len(kept[page : page + PAGE]), b"\0")
                    kept[page : page + PAGE] = before[: len(kept[page : page + PAGE])]
                new = bytes(kept)
            (to / name).write_bytes(new)

    def close(self):
        for fd in self.files.values():
            os.close(fd)


class Writer:
    """A life that writes, and what is known of what it has written."""

    def __init__(self, directory):
        self.log = FileLogs(directory, SEGMENT_BYTES).open(life(1))
        self.seq = self.durable = self.floor = 0
        self.written = {}  # by name of the segment, in order
        self.pending = []

    def do(self, step):
        if step == "append":
            self.seq += 1
            self.log.append(message(self.seq))
            segment = self.log._index[CHANNEL][self.seq].segment.path.name
            self.written.setdefault(segment, []).append(self.seq)
        elif step == "flush":
            self.log.read(CHANNEL, after=self.seq, through=self.seq)
        elif step == "begin":
            self.pending.append((self.log.start_sync(), self.seq))
            self.pending[-1][0].wait()
        elif step == "finish" and self.pending:
            sync, through = self.pending.pop(0)
            sync.finish()
            self.durable = max(self.durable, through)
        elif step == "sync":
            self.log.sync()
            self.durable = self.seq
        elif step == "prune":
            self.floor = self.durable
            self.log.prune(CHANNEL, through=self.floor)

    def check(self, image):
        """Hold against what was written what another life finds."""
        for path in segments(image):
            found, damaged = found_in(path)
            written = self.written.get(path.name, [])
            assert not damaged
            assert found == written[: len(found)]
        log = FileLogs(image).open(life(2))
        for seq in range(self.floor + 1, self.seq + 1):
            try:
                assert seqs(log.read(CHANNEL, after=seq - 1, through=seq)) == [(seq, 1)]
            except ObjectMissing:
                assert seq > self.durable
        log.close()


STEPS = st.lists(
    st.sampled_from(
        ["append"] * 6 + ["sync", "sync", "begin", "finish", "prune", "prune", "flush"]
    ),
    min_size=10,
    max_size=80,
)


@given(steps=STEPS, data=st.data())
@settings(max_examples=150, deadline=None)
def test_whatever_a_crash_leaves_is_what_was_written_under_that_name(tmp_path_factory, steps, data):
    directory, image = tmp_path_factory.mktemp("logs"), tmp_path_factory.mktemp("image")
    disk = Disk(directory)
    with pytest.MonkeyPatch.context() as patches:
        disk.watch(patches)
        writer = Writer(directory)
        for step in steps:
            writer.do(step)
        disk.look()
    disk.image(data, image)
    writer.check(image)
    if data.draw(st.booleans(), "without indexes"):
        for path in image.glob("*.index"):
            path.unlink()
        writer.check(image)
    disk.close()
    writer.log.close()


def test_a_sync_may_end_after_another_has_closed_a_segment_of_it(tmp_path):
    """The mark of the first sync lies behind what the second covers, and before what the third does."""
    for many in range(1, 12):  # of these, some fill a segment between the first sync and the second
        directory = tmp_path / str(many)
        directory.mkdir()
        writer = Writer(directory)
        for step in (*["append"] * many, "begin", "append", "begin", "finish", "begin"):
            writer.do(step)
        writer.do("finish")
        writer.do("finish")
        writer.check(directory)
        writer.log.close()


def test_the_process_may_be_killed_between_any_two_calls(tmp_path, monkeypatch):
    """SIGKILL: everything that was done is there, and nothing else."""
    directory, images = tmp_path / "logs", tmp_path / "images"
    steps = ["append"] * 10 + ["sync", "prune", "sync"] + ["append"] * 10 + ["flush", "sync"]
    directory.mkdir()
    writer = Writer(directory)
    killed = []

    def keep_image(call):
        image = images / f"{len(killed):03d}-{call}"
        shutil.copytree(directory, image)
        killed.append((image, writer.floor, writer.durable, writer.seq))

    for call in ("rename", "link", "unlink", "open", "writev", "fsync"):
        real = getattr(os, call)

        def spied(*args, real=real, call=call, **kwargs):
            inside = call in ("writev", "fsync") or str(args[0]).startswith(str(directory))
            result = real(*args, **kwargs)
            if inside and not copying:
                copying.append(call)
                keep_image(call)
                copying.clear()
            return result

        monkeypatch.setattr(os, call, spied)
    copying: list[str] = []
    for step in steps * 3:
        writer.do(step)
    monkeypatch.undo()
    calls = {image.name.partition("-")[2] for image, *_ in killed}
    assert calls == {"rename", "link", "unlink", "open", "writev", "fsync"}
    floor, durable, seq = writer.floor, writer.durable, writer.seq
    for image, *known in killed:
        writer.floor, writer.durable, writer.seq = known
        writer.check(image)
    writer.floor, writer.durable, writer.seq = floor, durable, seq
    writer.check(directory)
    writer.log.close()


def test_a_file_is_overwritten_only_when_the_loss_of_its_name_is_durable(tmp_path):
    log = FileLogs(tmp_path, SEGMENT_BYTES).open(life(1))
    fill(log, 1, 9)
    log.sync()
    log.prune(CHANNEL, through=3)
    (first,) = (path.stat().st_ino for path in spares(tmp_path))
    under_way = log.start_sync()
    under_way.wait()
    log.prune(CHANNEL, through=9)  # too late for the sync that is under way
    under_way.finish()
    kept = {path.stat().st_ino for path in spares(tmp_path)}
    fill(log, 10, 16)
    assert kept & {path.stat().st_ino for path in segments(tmp_path)} == {first}
    log.sync()
    fill(log, 17, 22)
    assert kept <= {path.stat().st_ino for path in segments(tmp_path)}
    log.close()


def test_names_that_cannot_be_made_durable_are_no_error_and_nothing_is_overwritten(
    tmp_path, monkeypatch
):
    def fail(_):
        raise OSError(5, "Input/output error")

    log = FileLogs(tmp_path, SEGMENT_BYTES).open(life(1))
    fill(log, 1, 9)
    log.sync()
    log.prune(CHANNEL, through=9)
    kept = spares(tmp_path)
    monkeypatch.setattr(places, "sync_directory", fail)
    log.sync()
    fill(log, 10, 20)
    assert spares(tmp_path) == kept != []
    log.close()


def test_whichever_byte_of_a_used_file_is_damaged_nothing_wrong_is_read(tmp_path):
    log = write_again(tmp_path)
    for seq in (10, 11):
        fill(log, seq, seq)
        log.sync()
    (path,) = segments(tmp_path)
    expected, _ = found_in(path)
    assert expected == [10, 11]
    whole = path.read_bytes()
    end = scan(path, 0, seed_of(path)).end
    assert end < len(whole)  # behind it stands what an earlier segment held
    last_mark = 8 + len(b"snapline: synced through") + 16
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        found, damaged = found_in(path)
        assert found == expected[: len(found)]
        assert damaged == (place < end - last_mark)
    path.write_bytes(whole)
    log.close()


def test_damage_of_what_was_durable_is_reported_in_a_used_file(tmp_path):
    log = write_again(tmp_path)
    fill(log, 10, 10)
    log.sync()
    (path,) = segments(tmp_path)
    path.write_bytes(b"!" + path.read_bytes()[1:])
    for index in tmp_path.glob("*.index"):
        index.unlink()
    successor = FileLogs(tmp_path).open(life(2))
    with pytest.raises(ObjectDamaged):
        successor.read(CHANNEL, after=9, through=10)
    for opened in (log, successor):
        opened.close()
