"""The map from keys to many rows, against a dict of lists."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from snapline.batch import Batch, encode
from snapline.dataflow.state.multi_map import MultiMap
from snapline.dataflow.state.slot_table import EMPTY, SlotTable

KEYS = st.lists(st.integers(0, 9) | st.just(EMPTY), min_size=1, max_size=40)
REMOVED = st.lists(st.integers(0, 30), max_size=8)


def ints(values):
    return np.array(values, np.int64)


def rows_of(first, keys):
    numbers = ints(range(first, first + len(keys)))
    return Batch({"n": numbers}).with_columns(**Batch.of(names=[[n, n] for n in numbers]).columns)


def found(numbers, keys):
    positions, rows = numbers.find(ints(keys))
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
def test_to_look_for_a_key_takes_no_slot(known, asked):
    table = SlotTable({"value": -1})
    slots = table.locate(ints(known))
    table.columns["value"][slots] = 5
    size = len(table)
    values = table.columns["value"][table.find(ints(asked))]
    assert values.tolist() == [5 if key in known else -1 for key in asked]
    assert len(table) == size


def test_keys_behind_each_other_are_found_also_beyond_the_last_slot():
    keys = np.random.default_rng(1).integers(-(2**62), 2**62, 3_000)
    table = SlotTable({"value": -1})
    for start in range(0, 2_000, 40):
        slots = table.locate(keys[start : start + 40])
        table.columns["value"][slots] = keys[start : start + 40]
    assert table.columns["value"][table.find(keys[:2_000])].tolist() == keys[:2_000].tolist()
    assert set(table.columns["value"][table.find(keys[2_000:])].tolist()) == {-1}
