"""Keyed state with keys of any kind, also when their hashes collide."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapline.batch import Batch, Varlen, Words
from snapline.dataflow.state import keyed_state as state_module
from snapline.dataflow.state.hashing import hash_columns
from snapline.dataflow.state.keyed_state import KeyedState

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
    assert sorted(state.keys_at(state.slots())["k"].to_list()) == ["x", "y"]


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
def test_many_rows_of_few_keys_are_added_and_found_like_any(texts):
    numbers = np.random.default_rng(3).integers(0, 300, 20_000)
    column = Varlen.of("str", [f"k{n}" for n in numbers]) if texts else numbers - 150
    state = KeyedState(("k",), {})
    state.add([column])
    assert len(state) == len(np.unique(numbers))
    back = state.keys_at(state.find([column]))["k"]
    same = back.to_list() == column.to_list() if texts else np.array_equal(back, column)
    assert same  # one word: pytest would compare long lists for minutes


def test_to_find_keys_does_not_make_the_table_grow():
    state = KeyedState(("k",), {"n": 0})
    state.locate([np.arange(10)])
    before = state["n"]
    state.find([np.zeros(50_000, np.int64)])
    assert state["n"] is before


@pytest.mark.parametrize(("dtype", "kind"), [("U", "str"), ("S", "bytes")])
def test_numpys_own_texts_are_keys_like_any_and_never_numbers(dtype, kind):
    state = KeyedState(("k",), {"n": 0})
    keys = np.array(["1", "01", "x", "1"], dtype)
    slots = state.locate([keys])
    assert len(set(slots.tolist())) == 3
    assert state.locate([Varlen.of(kind, keys.tolist())]).tolist() == slots.tolist()
    assert state.keys_at(slots)["k"].to_list() == keys.tolist()
