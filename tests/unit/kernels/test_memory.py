"""Memory that is there when it is touched, and what is done where it cannot be had."""

import mmap
import subprocess
import sys

import numpy as np
import pytest

from snapline.dataflow.state.columns import Fixed
from snapline.kernels import memory

ROOMY = pytest.mark.skipif(not memory._reservation(), reason="memory counts when it is reserved")


@pytest.fixture
def refused(monkeypatch):
    """A system that has no room for more."""

    def no_room(*_):
        raise OSError("no room")

    monkeypatch.setattr(mmap, "mmap", no_room)


def test_a_large_array_is_zeros_that_can_be_written():
    array = memory.zeros(memory.LARGE, np.int64)
    assert isinstance(array.base, mmap.mmap | memoryview)
    array[-1] = 5
    assert array[0] == 0
    assert array.sum() == 5


def test_where_no_room_is_given_a_large_array_is_an_ordinary_one(refused):
    array = memory.zeros(memory.LARGE, np.int64)
    assert array.base is None
    assert not array.any()
    assert memory.room_for_all(np.int64) is None


def test_whole_pages_alone_are_given_back():
    array = memory.zeros(memory.LARGE, np.int64)
    array[:] = 7
    items = mmap.PAGESIZE // 8
    memory.give_back(array, items + 1, 4 * items - 1)
    assert np.flatnonzero(array == 0).tolist() == list(range(2 * items, 3 * items))
    memory.give_back(array, 5 * items + 1, 6 * items - 1)
    memory.give_back(np.ones(10), 0, 10)
    assert np.count_nonzero(array == 0) == items


@ROOMY
def test_a_large_column_never_moves_again(monkeypatch):
    monkeypatch.setattr(memory, "LARGE", 1 << 12)
    column, homes, views = Fixed(np.int64), set(), []
    for start in range(0, 100_000, 1_000):
        column.append(np.arange(start, start + 1_000))
        if start:
            homes.add(column.data.ctypes.data)
            views.append(column.view())
    assert len(homes) == 1
    assert all(np.array_equal(view, np.arange(len(view))) for view in views)


def test_where_nothing_is_reserved_a_column_doubles(monkeypatch, refused):
    monkeypatch.setattr(memory, "LARGE", 1 << 12)
    column, views = Fixed(np.int64), []
    for start in range(0, 100_000, 1_000):
        column.append(np.arange(start, start + 1_000))
        views.append(column.view())
    assert len(column.data) == 1 << 17
    assert all(np.array_equal(view, np.arange(len(view))) for view in views)


def test_a_column_that_fills_its_reservation_doubles_from_there_on(monkeypatch):
    monkeypatch.setattr(memory, "LARGE", 1 << 12)
    monkeypatch.setattr(memory, "_reservation", lambda: 1 << 16)
    column = Fixed(np.int64)
    column.append(np.arange(5_000))
    assert len(column.data) == 1 << 13
    column.append(np.arange(5_000, 20_000))
    assert column.view().tolist() == list(range(20_000))


@ROOMY
def test_under_a_limit_of_addresses_nothing_is_reserved():
    program = "from snapline.kernels import memory; print(memory._reservation())"
    limited = ["sh", "-c", 'ulimit -v 8000000; exec "$0" -c "$1"', sys.executable, program]
    assert subprocess.run(limited, capture_output=True, text=True, check=True).stdout == "0\n"
