"""Keyed state with keys of any kind, also when their hashes collide."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapline.batch import Batch, Varlen, Words
from snapline.dataflow.state import keyed_state as state_module
from snapline.dataflow.state.hashing import hash_columns
from snapline.dataflow.state.keyed_state import KeyedState

pytestmark = pytest.mark.usefixtures("both_forms")

TEXT = st.sampled_from(["", "a", "b", "aa", "ab", "ba", "\0", "ä"])
PAIRS = st.lists(st.tuples(TEXT, st.integers(0, 3)), min_size=1, max_size=40)


def count(state: KeyedState, texts: list[str], numbers: list[int]) -> None:
    slots = state.locate([Varlen.of("str", texts), np.array(numbers)])
    np.add.at(state["n"], slots, 1)
    state.touch(slots)


@pytest.mark.parametrize("distinct", [1, 3, None], ids=["one-hash", "three-hashes", "real-hash"])
def test_keys_with_equal_hashes_are_told_apart(distinct, monkeypatch):
    real = hash_columns
    if distinct is not None:
        monkeypatch.setattr(
            state_module, "hash_columns", lambda columns: real(columns) % np.uint64(distinct)
        )

    @given(st.lists(PAIRS, max_size=4))
    def holds(batches):
        state, model = KeyedState(("text", "number"), {"n": 0}), {}
        for pairs in batches:
            count(state, [text for text, _ in pairs], [number for _, number in pairs])
            for pair in pairs:
                model[pair] = model.get(pair, 0) + 1
        rows = state.capture(full=True).rows()
        assert {(text, number): n for text, number, n in rows} == model
        assert len(rows) == len(model) == len(state)

    holds()


def test_words_and_strings_are_the_same_key():
    state = KeyedState(("k",), {"n": 0})
    words = state.locate([Words(np.array([1, 0, 1], np.int32), ("x", "y"))])
    assert state.locate([Varlen.of("str", ["y", "x", "y"])]).tolist() == words.tolist()
    assert sorted(state.keys()["k"].to_list()) == ["x", "y"]


@pytest.mark.parametrize(
    "dtype", ["int8", "int32", "int64", "uint64", "float32", "float64", "bool"]
)
def test_a_key_comes_back_in_its_own_dtype(dtype):
    state = KeyedState(("k",), {})
    keys = np.array([0, 1, 1], dtype)
    slots = state.locate([keys])
    back = state.keys_at(slots)["k"]
    assert back.dtype == dtype
    assert back.tolist() == keys.tolist()


def test_not_a_number_is_one_key_and_zero_has_no_sign():
    state = KeyedState(("k",), {})
    assert len(set(state.locate([np.array([np.nan, np.nan])]).tolist())) == 1
    assert len(set(state.locate([np.array([0.0, -0.0])]).tolist())) == 1
    assert len(state) == 2


def test_bytes_and_lists_may_be_keys():
    state = KeyedState(("b", "l"), {})
    columns = [Varlen.of("bytes", [b"x", b"x", b"x"]), Varlen.of("list", [[1], [1, 2], [1]])]
    first, second, third = state.locate(columns).tolist()
    assert first == third != second


def test_what_was_restored_is_not_in_the_next_delta():
    state = KeyedState(("k",), {"n": 0})
    state.restore([Batch.of(k=[1, 2], n=[5, 6])])
    assert state.capture(full=False).length == 0
    assert sorted(state.capture(full=True).rows()) == [(1, 5), (2, 6)]


@pytest.mark.parametrize("texts", [False, True], ids=["numbers", "texts"])
def test_many_rows_of_few_keys_are_found_like_any_and_few_rows_are_made(texts):
    numbers = np.random.default_rng(3).integers(0, 300, 20_000)
    column = Varlen.of("str", [f"k{n}" for n in numbers]) if texts else numbers - 150
    state = KeyedState(("k",), {"n": 0})
    rows = state.locate([column])
    assert len(state) == len(np.unique(numbers)) == len(state["n"])
    back = state.keys_at(rows)["k"]
    same = back.to_list() == column.to_list() if texts else np.array_equal(back, column)
    assert same  # one word: pytest would compare long lists for minutes
    assert np.array_equal(state.locate([column]), rows)


@pytest.mark.parametrize("texts", [False, True], ids=["numbers", "texts"])
def test_a_capture_does_not_change_when_keys_and_values_do(texts):
    def keys(start, stop):
        numbers = np.arange(start, stop)
        return [Varlen.of("str", [f"k{n}" for n in numbers]) if texts else numbers]

    state, captured = KeyedState(("k",), {"n": 0}), []
    for stop in range(10, 3_000, 333):
        state.count_up("n", keys(stop // 2, stop))
        full = state.capture(full=True)
        captured.append((full, full.rows()))
    assert all(full.rows() == rows for full, rows in captured)


@pytest.mark.parametrize("fill", [0, 7, -0.0, 0.5, "ab", True])
def test_new_keys_begin_with_what_was_said(fill):
    state = KeyedState(("k",), {"v": fill, "n": 0})
    for stop in (3, 200, 5_000):
        rows = state.locate([np.arange(stop)])
        state.count_up("n", [np.arange(stop, stop + 9)])
        assert {repr(value) for value in state["v"].tolist()} == {repr(fill)}
        state["v"][rows] = np.full(stop, fill)


@pytest.mark.parametrize("texts", [False, True], ids=["numbers", "texts"])
def test_counts_go_on_behind_a_restore(texts):
    column = (
        Varlen.of("str", ["a", "b", "a"]) if texts else np.array([-(2**63), 2**63 - 1, -(2**63)])
    )
    state, after = KeyedState(("k",), {"n": 0}), KeyedState(("k",), {"n": 0})
    assert state.count_up("n", [column]).tolist() == [1, 1, 2]
    captures = [state.capture(full=False)]
    assert state.count_up("n", [column]).tolist() == [3, 2, 4]
    captures.append(state.capture(full=False))
    after.restore(captures)
    assert after.capture(full=False).length == 0
    assert after.count_up("n", [column]).tolist() == [5, 3, 6]


def test_keys_that_are_no_whole_array_are_taken_like_any():
    both = np.arange(40).reshape(20, 2)
    both.flags.writeable = False
    state = KeyedState(("k",), {"n": 0})
    assert state.count_up("n", [both[:, 0]]).tolist() == [1] * 20
    assert state.locate([both[:, 0]]).tolist() == list(range(20))


@pytest.mark.parametrize(("dtype", "kind"), [("U", "str"), ("S", "bytes")])
def test_numpys_own_texts_are_keys_like_any_and_never_numbers(dtype, kind):
    state = KeyedState(("k",), {"n": 0})
    keys = np.array(["1", "01", "x", "1"], dtype)
    slots = state.locate([keys])
    assert len(set(slots.tolist())) == 3
    assert state.locate([Varlen.of(kind, keys.tolist())]).tolist() == slots.tolist()
    assert state.keys_at(slots)["k"].to_list() == keys.tolist()
