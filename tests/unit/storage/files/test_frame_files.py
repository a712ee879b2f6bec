"""Files of frames under syncs that overlap with appends: what a crash may take, and what is damage."""

import os
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapline.batch import bytes_of
from snapline.errors import StorageError, StoreUnavailable
from snapline.storage.codec import FRAME_OVERHEAD, unframe
from snapline.storage.files.frames import Appender, scan

PAGE = 16  # of the disk of these tests: what a crash takes or leaves as a whole
MARK_BYTES = 48


@dataclass
class History:
    """A file that was written in some way, and what is known of it."""

    payloads: list[tuple[int, bytes]] = field(default_factory=list)  # in order, with their places
    marks: list[tuple[int, int]] = field(default_factory=list)  # where it stands, how far it says
    durable: int = 0  # through here the disk has answered
    data: bytes = b""

    def found(self, image: bytes):
        """What a reader finds in another state of the file."""
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "frames"
            path.write_bytes(image)
            found = scan(path)
            return [(at, bytes(payload)) for at, payload in found.frames], found.damaged

    def before(self, place: int):
        """What stands before a place."""
        return [(at, payload) for at, payload in self.payloads if at < place]


@st.composite
def histories(draw) -> History:
    """Append, start, wait and finish in any order in which one writer and some threads may."""
    history = History()
    with tempfile.TemporaryDirectory() as directory:
        appender = Appender(Path(directory) / "frames")
        started, waited = [], []
        for step in draw(st.lists(st.sampled_from("aaafswae"), max_size=25)):
            if step == "a":
                payload = draw(st.binary(max_size=40))
                history.payloads.append((appender.append(payload), payload))
            elif step == "f":
                appender.flush()
            elif step == "s":
                started.append((appender.start_sync(), appender.size))
            elif step == "w" and started:
                sync, place = started.pop(draw(st.integers(0, len(started) - 1)))
                sync.wait()
                waited.append((sync, place))
                history.durable = max(history.durable, place)
            elif step == "e" and waited:
                sync, place = waited.pop(draw(st.integers(0, len(waited) - 1)))
                before = appender.size
                sync.finish()
                if appender.size > before:
                    history.marks.append((appender.size - MARK_BYTES, place))
        appender.close()
        history.data = appender.path.read_bytes()
    history.payloads = history.before(len(history.data))  # the rest never left the process
    return history


@given(histories(), st.data())
@settings(max_examples=300, deadline=None)
def test_whatever_pages_a_crash_takes_from_the_unsynced_part_is_a_torn_tail(history, data):
    size = data.draw(st.integers(history.durable, len(history.data)), "size")
    image = bytearray(history.data[:size])
    torn = [at for at, _ in history.payloads if history.durable <= at < size]
    places = st.integers(history.durable, size) | st.sampled_from([size, *torn])
    for page in data.draw(st.sets(places, max_size=3), "lost"):
        image[page : page + PAGE] = bytes(len(image[page : page + PAGE]))
    found, damaged = history.found(bytes(image))
    assert not damaged
    assert found == history.payloads[: len(found)]
    assert len(found) >= len(history.before(history.durable))


@given(histories().filter(lambda history: history.data), st.data())
@settings(max_examples=300, deadline=None)
def test_a_changed_byte_is_damage_if_a_mark_vouches_for_it_and_else_a_torn_tail(history, data):
    place = data.draw(st.integers(0, len(history.data) - 1), "place")
    image = bytearray(history.data)
    image[place] ^= data.draw(st.integers(1, 255), "change")
    frame = _frame_at(history.data, place)
    vouched = any(stands > frame and through > frame for stands, through in history.marks)
    assert history.found(bytes(image)) == (history.before(frame), vouched)


def _frame_at(data: bytes, place: int) -> int:
    """Where the frame begins to which a byte belongs."""
    at = 0
    while (stop := at + FRAME_OVERHEAD + len(unframe(data, at))) <= place:
        at = stop
    return at


def test_what_is_appended_during_a_sync_may_be_torn_before_its_mark(tmp_path):
    appender = Appender(tmp_path / "frames")
    appender.append(b"durable")
    sync = appender.start_sync()
    sync.wait()
    later = appender.append(b"later")
    sync.finish()
    whole = appender.path.read_bytes()
    for place, damaged in ((0, True), (later, False)):
        appender.path.write_bytes(whole[:place] + bytes(4) + whole[place + 4 :])
        assert scan(appender.path).end == place
        assert scan(appender.path).damaged == damaged


def test_a_record_that_looks_like_a_mark_is_a_record(tmp_path):
    first = Appender(tmp_path / "first")
    first.append(b"x")
    first.sync()
    _, mark = unframe(data := first.path.read_bytes()), unframe(data, FRAME_OVERHEAD + 1)
    second = Appender(tmp_path / "second")
    second.append(bytes(mark))
    second.flush()
    assert [bytes(payload) for _, payload in scan(second.path).frames] == [bytes(mark)]


@pytest.mark.parametrize("step", [1 << 20, 5_000, 3])
def test_a_payload_in_pieces_is_written_whole_however_little_the_kernel_takes(
    tmp_path, monkeypatch, step
):
    writev = os.writev

    def reluctant(fd, pieces):
        data = b"".join(bytes_of(piece) for piece in pieces)
        return writev(fd, [data[:step]])

    monkeypatch.setattr(os, "writev", reluctant)
    numbers = np.arange(1_000)
    appender = Appender(tmp_path / "frames")
    places = [appender.append(b"head", numbers, b"", b"tail"), appender.append(b"small")]
    appender.flush()
    found = scan(appender.path)
    assert found.end == appender.size
    assert [at for at, _ in found.frames] == places
    assert [bytes(payload) for _, payload in found.frames] == [
        b"head" + numbers.tobytes() + b"tail",
        b"small",
    ]


def test_an_array_that_was_appended_cannot_be_written_to(tmp_path):
    numbers = np.arange(1_000)
    Appender(tmp_path / "frames").append(numbers)
    with pytest.raises(ValueError, match="read-only"):
        numbers[0] = 7


def test_appending_goes_on_while_the_disk_is_busy(tmp_path, monkeypatch):
    busy, ready = threading.Event(), threading.Event()
    fsync = os.fsync

    def slow(fd):
        busy.set()
        assert ready.wait(30)
        fsync(fd)

    monkeypatch.setattr("os.fsync", slow)
    appender = Appender(tmp_path / "frames")
    appender.append(b"one")
    sync = appender.start_sync()
    thread = threading.Thread(target=sync.wait)
    thread.start()
    assert busy.wait(30)
    appender.append(b"two")
    appender.flush()
    with pytest.raises(StorageError, match="was not synced"):
        sync.finish()
    ready.set()
    thread.join()
    sync.finish()
    assert [bytes(payload) for _, payload in scan(appender.path).frames] == [b"one", b"two"]


def test_appending_goes_on_while_a_write_is_stuck_and_the_order_stays(tmp_path, monkeypatch):
    stuck, ready = threading.Event(), threading.Event()
    writev = os.writev

    def slow(fd, pieces):
        if not ready.is_set():
            stuck.set()
            assert ready.wait(30)
        return writev(fd, pieces)

    monkeypatch.setattr("os.writev", slow)
    appender = Appender(tmp_path / "frames")
    appender.append(b"first")
    sync = appender.start_sync()
    thread = threading.Thread(target=sync.wait)
    thread.start()
    assert stuck.wait(30)
    large = [bytes([number]) * (1 << 20) for number in range(3)]
    for payload in large:
        appender.append(payload)  # would be written at once, were nobody writing
    ready.set()
    thread.join()
    sync.finish()
    appender.sync()
    found = scan(appender.path)
    assert [bytes(payload) for _, payload in found.frames] == [b"first", *large]
    assert found.end == appender.size


def test_what_was_appended_before_a_sync_began_is_on_disk_when_it_ends(tmp_path):
    appender = Appender(tmp_path / "frames")
    appender.append(b"one")
    sync = appender.start_sync()
    assert scan(appender.path).frames == []  # the writer itself has written nothing
    sync.wait()
    assert [bytes(payload) for _, payload in scan(appender.path).frames] == [b"one"]


def test_a_file_that_is_closed_during_a_sync_is_synced_and_not_called_durable(tmp_path):
    appender = Appender(tmp_path / "frames")
    appender.append(b"one")
    sync = appender.start_sync()
    appender.close()
    sync.wait()
    with pytest.raises(StorageError, match="closed"):
        sync.finish()


def test_nothing_is_written_to_a_file_that_was_closed_after_a_sync(tmp_path):
    """It may be another segment by then, and another sync of it may still be waited for."""
    appender = Appender(tmp_path / "frames")
    appender.append(b"one")
    first, second = appender.start_sync(), appender.start_sync()
    first.wait()
    written = appender.path.read_bytes()
    appender.close()
    with pytest.raises(StorageError, match="closed"):
        first.finish()
    second.wait()
    assert appender.path.read_bytes() == written


@pytest.mark.parametrize("at_once", [1, 30, 53, 1000])
def test_however_little_is_read_at_once_the_same_is_found(tmp_path, monkeypatch, at_once):
    appender = Appender(tmp_path / "frames")
    for number in range(6):
        appender.append(bytes([number]) * 17 * number)
        if number % 2:
            appender.sync()
    whole = appender.path.read_bytes()
    for place in range(len(whole)):
        appender.path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        expected = scan(appender.path)
        with monkeypatch.context() as little:
            little.setattr("snapline.storage.files.frames._READ_BYTES", at_once)
            little.setattr("snapline.storage.files.frames._SEARCH_BYTES", 23 + at_once)
            assert scan(appender.path) == expected
    assert expected.end == len(whole) - MARK_BYTES


def test_after_a_failed_fsync_no_other_sync_of_the_file_succeeds(tmp_path, monkeypatch):
    """The disk reports a lost page once: to whoever asks first, whatever part it was about."""
    appender = Appender(tmp_path / "frames")
    syncs = []
    for payload in (b"one", b"two", b"three", b"four"):
        appender.append(payload)
        syncs.append(appender.start_sync())
    for sync in syncs[:2]:
        sync.wait()
    syncs[1].finish()
    with monkeypatch.context() as broken:
        broken.setattr("os.fsync", _no_space)
        with pytest.raises(StoreUnavailable, match="cannot sync"):
            syncs[2].wait()
    with pytest.raises(StorageError, match="takes nothing more"):
        syncs[3].wait()
    for sync in (syncs[0], *syncs[2:]):
        with pytest.raises(StorageError):
            sync.finish()
    assert len(scan(appender.path).frames) == 4


def _no_space(fd):
    raise OSError(28, "No space left on device")


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs a list of open files")
def test_no_descriptor_is_left_behind(tmp_path, monkeypatch):
    before = len(os.listdir("/proc/self/fd"))
    for number in range(3):
        appender = Appender(tmp_path / str(number))
        appender.sync()
        unwaited = appender.start_sync()
        failing = appender.start_sync()
        with monkeypatch.context() as broken:
            broken.setattr("os.fsync", _no_space)
            with pytest.raises(StoreUnavailable):
                failing.wait()
    del appender, unwaited, failing
    assert len(os.listdir("/proc/self/fd")) == before
