"""Files that are written past the memory of the operating system hold what was to be written."""

import errno
import fcntl
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapline.storage import uncached
from snapline.storage.codec import Pieces, digest_of
from snapline.storage.files.store import FileStore

EDGES = [0, 1, 4095, 4096, 4097, uncached.LARGE - 1, uncached.LARGE, uncached.LARGE + 1]


def some(size: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8)


def written(path, data: Pieces) -> bytes:
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    try:
        uncached.write_to(fd, data)
        os.fsync(fd)
    finally:
        os.close(fd)
    return path.read_bytes()


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(EDGES) | st.integers(0, 3 << 20), max_size=6), st.integers(0, 2**32)
)
def test_pieces_of_any_size_are_written_one_after_the_other(tmp_path_factory, sizes, seed):
    data = Pieces([some(size, seed + n) for n, size in enumerate(sizes)])
    whole = bytes(data)
    assert (data.size, data.digest) == (len(whole), digest_of(whole))
    assert written(tmp_path_factory.mktemp("any") / "file", data) == whole


def test_a_large_file_is_written_directly_and_a_small_one_is_not(tmp_path, monkeypatch):
    direct = []
    monkeypatch.setattr(uncached, "_go_direct", lambda fd, on: direct.append((fd, on)))
    written(tmp_path / "small", Pieces([some(uncached.LARGE - 1)]))
    assert direct == []
    written(tmp_path / "large", Pieces([some(uncached.LARGE - 1), b"1"]))
    assert [on for _, on in direct] == [True]


def test_a_file_system_that_does_not_agree_is_written_the_usual_way(tmp_path, monkeypatch):
    def refuse(fd, command, *given):
        if command == fcntl.F_SETFL:
            raise OSError(errno.EINVAL, "no such thing here")
        return 0

    monkeypatch.setattr(fcntl, "fcntl", refuse)
    data = Pieces([some(uncached.LARGE + 77)])
    assert written(tmp_path / "file", data) == bytes(data)


@pytest.mark.parametrize("good", [0, 1])
def test_a_file_system_that_breaks_its_word_is_written_the_usual_way(tmp_path, monkeypatch, good):
    """It agrees to write directly; after some writes it refuses, or takes a part that is no block."""
    calls = []
    usual = os.write

    def write(fd, data):
        calls.append(fd)
        if uncached._is_direct(fd) and len(calls) > good:
            if len(calls) == good + 1:
                uncached._go_direct(fd, False)
                count = usual(fd, data[:100])
                uncached._go_direct(fd, True)
                return count
            raise OSError(errno.EINVAL, "a place that is no multiple of a block")
        return usual(fd, data)

    monkeypatch.setattr(os, "write", write)
    data = Pieces([some(3 * uncached.LARGE + 4099)])
    assert written(tmp_path / "file", data) == bytes(data)
    assert len(calls) > good + 2


def test_any_other_error_is_told(tmp_path, monkeypatch):
    def full(fd, data):
        raise OSError(errno.ENOSPC, "the disk is full")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="disk is full"):
        written(tmp_path / "file", Pieces([some(uncached.LARGE)]))


def test_a_large_object_of_a_store_is_whole(tmp_path):
    data = Pieces([some(uncached.LARGE), some(12345), b"", b"end"])
    store = FileStore(tmp_path / "store")
    assert store.get("large", store.put("large", data)) == bytes(data)
    assert store.put("large", bytes(data)) == data.digest
