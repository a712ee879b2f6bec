"""The slot table against a dict."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapline.dataflow.state.slot_table import _ODD, EMPTY, Groups, SlotTable, occurrences

KEYS = st.integers(-3, 40) | st.sampled_from([EMPTY, EMPTY + 1, 2**63 - 1])
BATCHES = st.lists(st.lists(KEYS, min_size=1, max_size=60), max_size=8)


@given(BATCHES)
def test_every_key_keeps_its_values_while_the_table_grows(batches):
    table, model = SlotTable({"sum": 0, "mean": 0.5}), {}
    for keys in batches:
        array = np.array(keys, np.int64)
        slots = table.locate(array)
        assert table.keys[slots].tolist() == keys
        np.add.at(table.columns["sum"], slots, array % 7)
        for key in keys:
            model[key] = model.get(key, 0) + key % 7
    assert len(table) == len(model)
    taken = table.slots()
    pairs = zip(table.keys[taken].tolist(), table.columns["sum"][taken].tolist(), strict=True)
    assert dict(pairs) == model
    assert set(table.columns["mean"][taken].tolist()) <= {0.5}


@given(BATCHES)
def test_one_by_one_and_all_at_once_find_the_same_keys(batches):
    whole, single = SlotTable({}), SlotTable({})
    for keys in batches:
        whole.locate(np.array(keys, np.int64))
        for key in keys:
            single.locate(np.array([key], np.int64))
    assert sorted(whole.keys[whole.slots()]) == sorted(single.keys[single.slots()])
    assert len(whole) == len(single)


@pytest.mark.parametrize("room", [32, 1024])
def test_keys_that_all_want_one_slot_are_told_apart(room):
    inverse = np.uint64(pow(int(_ODD), -1, 2**64))
    # These keys hash to 1, 2, 3, ..., of which only the upper bits count: all begin at slot 0.
    keys = (np.arange(1, 301, dtype=np.uint64) * inverse).view(np.int64)
    table = SlotTable({"n": 0})
    table._allocate(room)  # with room for all no key is moved
    slots = table.locate(keys)
    assert sorted(slots.tolist()) == list(range(300))
    table.columns["n"][slots] = np.arange(300)
    for some in (np.arange(299, -1, -1), np.arange(290, 300)):
        slots = table.locate(keys[some])
        assert table.columns["n"][slots].tolist() == some.tolist()
    assert len(table) == 300


@pytest.mark.parametrize("count", [5, 300])
def test_probes_go_on_at_the_first_slot_behind_the_last(count):
    inverse = np.uint64(pow(int(_ODD), -1, 2**64))
    # These keys hash to the largest numbers: all begin at the last slot.
    keys = (np.arange(-count, 0).view(np.uint64) * inverse).view(np.int64)
    table = SlotTable({})
    slots = table.locate(keys)
    last = len(table.keys) - 2  # the reserved slot stands behind it
    assert sorted(slots.tolist()) == [*range(count - 1), last]
    assert table.locate(keys[:1]).tolist() == slots[:1].tolist()


@pytest.mark.parametrize("batch", [1, 7, 500])
def test_at_most_a_third_of_the_slots_is_taken(batch):
    table = SlotTable({})
    for start in range(0, 3000, batch):
        table.locate(np.arange(start, start + batch, dtype=np.int64))
        assert 3 * len(table) <= len(table.keys) - 1


def test_known_keys_do_not_make_the_table_grow_without_end():
    table = SlotTable({})
    for _ in range(100):
        table.locate(np.arange(50, dtype=np.int64))
    assert len(table.keys) <= 513


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_occurrences_number_equal_slots_in_their_order(slots):
    expected = [slots[:i].count(slot) for i, slot in enumerate(slots)]
    assert occurrences(np.array(slots, np.int64)).tolist() == expected


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_groups_keep_the_order_of_arrival(slots):
    groups = Groups(np.array(slots, np.int64))
    runs = np.split(groups.order, groups.starts[1:])
    found = {slot: run.tolist() for slot, run in zip(groups.slots.tolist(), runs, strict=True)}
    assert found == {s: [i for i, x in enumerate(slots) if x == s] for s in sorted(set(slots))}
