"""The map from keys to many rows, against a dict of lists."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapline.batch import Batch
from snapline.batch_form import encode
from snapline.dataflow.state.multi_map import MultiMap

pytestmark = pytest.mark.usefixtures("both_forms")

LOWEST = -(2**63)
KEYS = st.lists(st.integers(0, 9) | st.just(LOWEST), min_size=1, max_size=40)
REMOVED = st.lists(st.integers(0, 30), max_size=8)


def ints(values):
    return np.array(values, np.int64)


def rows_of(first, keys):
    numbers = ints(range(first, first + len(keys)))
    return Batch({"n": numbers}).with_columns(**Batch.of(names=[[n, n] for n in numbers]).columns)


def found(numbers, keys):
    positions, rows = numbers.find(keys if isinstance(keys, np.ndarray) else ints(keys))
    return sorted(zip(positions.tolist(), rows.tolist(), strict=True))


@given(st.lists(st.tuples(KEYS, REMOVED), max_size=5))
def test_all_rows_of_a_key_are_found_until_they_are_removed(steps):
    numbers, model = MultiMap(), {}
    for keys, removed in steps:
        first = numbers.rows.length
        assert numbers.add(ints(keys), rows_of(first, keys)) == first
        model |= dict(enumerate(keys, first))
        gone = [row for row in removed if row in range(numbers.rows.length)]
        numbers.remove(ints(gone + gone))
        for row in gone:
            model.pop(row, None)
        asked = [3, *keys, 77, 3]
        expected = [(p, row) for p, key in enumerate(asked) for row in model if model[row] == key]
        assert found(numbers, asked) == sorted(expected)
        assert len(numbers) == len(model)
    assert numbers.capture(full=True).to_pydict().get("n", []) == list(model)


def test_a_capture_is_what_is_new_and_never_changes():
    numbers = MultiMap()
    numbers.add(ints([1, 2]), rows_of(0, [1, 2]))
    assert numbers.capture(full=False)["n"].tolist() == [0, 1]
    numbers.add(ints([2, 3]), rows_of(2, [2, 3]))
    delta = numbers.capture(full=False)
    before = encode(delta)
    numbers.remove(ints([2]))
    numbers.add(ints([1] * 200), rows_of(4, [1] * 200))
    assert delta["n"].tolist() == [2, 3]
    assert encode(delta) == before
    assert numbers.capture(full=True)["n"].tolist() == [0, 1, 3, *range(4, 204)]
    assert numbers.capture(full=False).length == 0


@given(KEYS, KEYS)
def test_to_look_for_a_key_makes_no_room_for_it(known, asked):
    numbers = MultiMap()
    numbers.add(ints(known), rows_of(0, known))
    size = len(numbers._index)
    assert {p for p, _ in found(numbers, asked)} == {p for p, k in enumerate(asked) if k in known}
    assert len(numbers._index) == size


def test_keys_that_are_no_whole_array_are_taken_like_any():
    numbers = MultiMap()
    both = ints(range(40)).reshape(20, 2)
    both.flags.writeable = False
    numbers.add(both[:, 0], rows_of(0, range(20)))
    assert found(numbers, both[:, 0]) == [(n, n) for n in range(20)]
    assert found(numbers, both[:, 1]) == []
