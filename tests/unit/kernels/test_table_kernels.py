"""The index of keys in each form of its kernels against a dict, while it grows at once or bit by bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_forms import FORMS, installed
from snapline.dataflow.state import key_index
from snapline.dataflow.state.key_index import KeyIndex
from snapline.dataflow.state.keyed_state import KeyedState
from snapline.kernels import memory, table

LOWEST, HIGHEST = -(2**63), 2**63 - 1
INVERSE = np.uint64(pow(table.ODD, -1, 2**64))
KEYS = st.integers(-3, 90) | st.sampled_from([LOWEST, LOWEST + 1, HIGHEST]) | st.integers(0, 2**62)
BATCHES = st.lists(st.lists(KEYS, min_size=1, max_size=60), max_size=12)


def ints(values):
    return np.array(values, np.int64)


def hashed_to(hashes):
    """Keys with these hashes, of which the upper bits say where a probe begins."""
    with np.errstate(over="ignore"):
        return (np.array(hashes, np.uint64) * INVERSE).view(np.int64)


@pytest.fixture(params=["at once", "bit by bit"], autouse=True)
def growing(request, monkeypatch):
    monkeypatch.setattr(key_index, "_AT_ONCE", 1 << 10 if request.param == "at once" else 0)
    monkeypatch.setattr(table, "_MOVED_MIN", 1)


class Model:
    """An index, and beside it the keys in the order in which they first came."""

    def __init__(self):
        self.index, self.rows = KeyIndex(), {}

    def take(self, keys):
        expected = [self.rows.setdefault(key, len(self.rows)) for key in keys.tolist()]
        assert self.index.locate(keys).tolist() == expected
        assert len(self.index) == len(self.rows)

    def holds(self):
        assert self.index.keys().tolist() == list(self.rows)
        asked = ints([*self.rows, -77, LOWEST, HIGHEST])
        assert self.index.find(asked).tolist() == [self.rows.get(k, -1) for k in asked.tolist()]
        assert len(self.index) == len(self.rows)

    @property
    def is_growing(self):
        return self.index._old is not self.index._cells


@given(BATCHES)
def test_rows_are_in_the_order_of_first_appearance(each_form, batches):
    model = Model()
    for keys in batches:
        model.take(ints(keys))
        model.holds()


@given(st.lists(st.tuples(st.sampled_from(FORMS), st.lists(KEYS, min_size=1)), max_size=14))
def test_every_form_goes_on_where_another_stopped(steps):
    model = Model()
    for form, keys in steps:
        with installed(form):
            model.take(ints(keys))
    for form in FORMS:
        with installed(form):
            model.holds()


@given(BATCHES)
def test_counts_are_those_of_the_keys_so_far(each_form, batches):
    state, seen, changed = KeyedState(("k",), {"n": 0}), [], set()
    for keys in batches:
        counts = state.count_up("n", [ints(keys)])
        assert counts.tolist() == [[*seen, *keys[: i + 1]].count(k) for i, k in enumerate(keys)]
        seen += keys
        changed |= set(keys)
        if len(keys) % 2:
            rows = state.capture(full=False).rows()
            assert sorted(rows) == sorted((key, seen.count(key)) for key in changed)
            changed = set()


@pytest.mark.parametrize("begin", [0, 2**64 - 200, 2**63], ids=["first", "last", "middle"])
@pytest.mark.parametrize("batch", [1, 13, 200])
def test_keys_that_all_want_one_cell_are_told_apart(each_form, begin, batch):
    keys = hashed_to([begin + i for i in range(200)])
    model = Model()
    for start in range(0, 200, batch):
        model.take(keys[start : start + batch])
    model.holds()
    model.take(keys[::-1].copy())


def test_the_last_cell_of_the_round_stays_free_while_a_table_is_moved(each_form, monkeypatch):
    monkeypatch.setattr(key_index, "_AT_ONCE", 0)
    model = Model()
    model.index.reserve(1 << 11)
    size, shift = len(model.index._cells) // 2, int(model.index._state[table.SHIFT])
    model.take(hashed_to([cell << shift for cell in range(1, size, 2)]))
    last = [((size - 1) << shift) + i for i in range(1, 9)]  # behind the last cell comes the first
    model.take(hashed_to(last))  # there is no room: the table doubles
    assert model.is_growing
    assert model.index._state[table.START] == 1  # the first cell is free, and the round ends there
    assert model.index._old[1] == 0
    model.holds()
    ahead = ahead_of_the_move(model.index)
    assert set(model.index._cells[2 * ahead].tolist()) <= set(hashed_to(last).tolist())
    assert len(ahead) == 4  # the last two cells of the new table, and round to its first two
    model.take(hashed_to(last))
    model.take(hashed_to([(i << 40) + 12345 for i in range(size // 3)]))
    assert not model.is_growing
    model.holds()


def ahead_of_the_move(index):
    """The cells of the new table that are taken beyond what the cells passed so far were moved to."""
    size, twice = len(index._old) // 2, len(index._cells) // len(index._old)
    start, passed = index._state[[table.START, table.PASSED]].tolist()
    taken = np.flatnonzero(index._cells[1::2])
    crowded = 150  # keys that found their cells taken stand behind them
    return taken[(taken - twice * start) % (twice * size) >= twice * passed + crowded]


@pytest.mark.parametrize("batch", [40, 1_000])
def test_a_new_table_is_filled_in_order_so_that_its_memory_is_touched_bit_by_bit(each_form, batch):
    index = KeyIndex()
    index.reserve(1 << 13)
    size = len(index._cells) // 2
    keys = np.random.default_rng(5).integers(LOWEST, HIGHEST, size)
    index.locate(keys[: size // 2])
    looked = 0
    for start in range(size // 2, size - batch, batch):
        index.locate(keys[start : start + batch])
        if index._old is not index._cells:
            assert len(ahead_of_the_move(index)) <= 8, "only keys whose probes end at the fence"
            looked += 1
    assert looked * batch * table.PER_KEY > size / 2
    assert index.keys().tolist() == keys[: len(index)].tolist()


def test_a_key_that_the_old_table_should_have_is_not_looked_for_in_the_new_one(each_form):
    index = KeyIndex()
    index.reserve(1 << 13)
    size = len(index._cells) // 2
    keys = np.random.default_rng(6).integers(LOWEST, HIGHEST, size // 2 + 100)
    for start in range(0, len(keys), 100):
        index.locate(keys[start : start + 100])
    assert index._old is not index._cells
    shift, old_shift = index._state[[table.SHIFT, table.OLD_SHIFT]].tolist()
    unknown = hashed_to([((size // 2 + i) << old_shift) + 1 for i in range(0, 1_000, 50)])
    at = table._first_cells(unknown, shift)
    index._cells[2 * at], index._cells[2 * at + 1] = unknown, 7  # as if they were there
    assert index.find(unknown).tolist() == [-1] * len(unknown)
    assert index.locate(unknown).tolist() == [len(keys) + i for i in range(len(unknown))]


@pytest.mark.parametrize("batch", [1, 7, 500])
def test_no_call_does_work_in_proportion_to_the_size(each_form, batch, monkeypatch):
    done_with = []  # whether the old table was, whenever the index doubled
    make_room = KeyIndex.make_room

    def watched(index):
        if index._state[table.WANTED]:
            done_with.append(index._state[table.PASSED] == table.ALL)
        make_room(index)

    monkeypatch.setattr(KeyIndex, "make_room", watched)
    index = KeyIndex()
    index.reserve(1 << 11)
    keys = np.random.default_rng(2).integers(LOWEST, HIGHEST, 20_000)
    most = 0
    for start in range(0, len(keys), batch):
        cells, before = index._cells, int(index._state[table.PASSED])
        index.locate(keys[start : start + batch])
        passed = int(index._state[table.PASSED])
        if passed != table.ALL:
            most = max(most, passed - (before if index._cells is cells else 0))
        assert 2 * len(index) <= len(index._cells) // 2
    assert len(done_with) > 3
    assert all(done_with)
    crowded = 150  # cells in a row that are taken: a call goes on to the next free one
    assert batch * table.PER_KEY / 2 <= most <= batch * table.PER_KEY + crowded
    assert index.keys().tolist() == keys.tolist()


def test_known_keys_do_not_make_the_index_grow(each_form):
    index = KeyIndex()
    index.locate(np.arange(10))
    cells = index._cells
    for _ in range(10):
        index.locate(np.zeros(500, np.int64))
        index.find(np.arange(500))
    assert index._cells is cells


def test_room_is_made_once_for_keys_that_are_announced(each_form):
    index = KeyIndex()
    index.reserve(5_000)
    cells = index._cells
    index.locate(np.arange(5_000))
    assert index._cells is cells


def test_the_memory_of_an_old_table_is_given_back_while_it_is_moved(each_form, monkeypatch):
    given = []
    monkeypatch.setattr(key_index, "_AT_ONCE", 0)
    monkeypatch.setattr(key_index, "_GIVE_BACK", 1 << 8)
    monkeypatch.setattr(memory, "give_back", lambda *about: given.append(about))
    index = KeyIndex()
    index.reserve(1 << 11)
    size = len(index._cells) // 2
    index.locate(
        hashed_to(range(1, 601))
    )  # the first cells are taken: the round begins behind them
    index.locate(np.arange(size // 2 - 600))
    for start in range(size // 2, size, 16):
        index.locate(np.arange(start, start + 16))
        if index._old is index._cells:
            break
    cells = [cell for _, low, high in given for cell in range(low, high)]
    assert len(cells) == len(set(cells)) > 1.5 * size
    assert 1_200 <= min(cells) < max(cells) < 2 * size
    assert index._state[table.PASSED] == table.ALL


@given(st.lists(st.integers(0, 40), min_size=1, max_size=60), st.sampled_from([0, 3, 40]))
def test_keys_are_numbered_also_if_their_hashes_are_nearly_the_same(numbers, shift):
    keys = hashed_to([number << shift for number in numbers])
    distinct = list(dict.fromkeys(keys.tolist()))
    found, new = table._numbered(keys)
    assert new.tolist() == distinct
    assert found.tolist() == [distinct.index(key) for key in keys.tolist()]
