"""Which groups the coordinator keeps: exactly those to which a checkpoint refers that exists."""

import random

import pytest

from snapline.engine.groups.records import GroupRecords
from snapline.ids import INITIAL, TaskId

TASK = TaskId("join/0")


def test_a_group_goes_with_the_last_checkpoint_that_refers_to_it():
    records = GroupRecords()
    records.add(TASK, 1, ["a", "b"], [])
    records.add(TASK, 2, ["c"], ["a"])
    records.collect(TASK, [1, 2])
    assert records.take_garbage() == [], "checkpoint 1 refers to it"
    records.collect(TASK, [2])
    assert records.take_garbage() == ["a"]
    assert records.keys() == {"b", "c"}
    assert records.take_garbage() == [], "once is enough"


def test_a_group_that_no_checkpoint_got_to_have_is_garbage_at_once():
    records = GroupRecords()
    records.add(TASK, 3, ["a"], ["a"])  # it was written for a checkpoint that was abandoned
    records.collect(TASK, [3])
    assert records.take_garbage() == ["a"]


def test_where_a_task_goes_back_what_was_dropped_since_belongs_to_it_again():
    records = GroupRecords()
    records.add(TASK, 1, ["a"], [])
    records.add(TASK, 2, ["b"], ["a"])
    records.go_back(TASK, 1)
    assert records.take_garbage() == ["b"]
    records.add(TASK, 9, ["c"], [])
    records.collect(TASK, [9])
    assert records.take_garbage() == []
    assert records.keys() == {"a", "c"}


def test_a_new_coordinator_learns_of_groups_from_those_who_were_restored():
    records = GroupRecords()
    records.adopt(TASK, 7, ["a", "b"])
    records.add(TASK, 8, [], ["a"])
    records.collect(TASK, [7, 8])
    assert records.keys() == {"a", "b"}
    records.collect(TASK, [8])
    assert records.take_garbage() == ["a"]
    records.go_back(TASK, INITIAL)
    assert records.take_garbage() == ["b"], "it begins empty"


@pytest.mark.parametrize("seed", range(40))
def test_exactly_what_is_referred_to_is_kept(seed):
    """Checkpoints come, go and are rolled back at random; brute force knows who refers to what."""
    dice, records = random.Random(seed), GroupRecords()
    held: dict[int, set[str]] = {}  # per checkpoint that exists
    present: set[str] = set()
    deleted: set[str] = set()
    for number in range(1, 60):
        added = {f"{number}.{n}" for n in range(dice.randrange(3))}
        dropped = {key for key in present if dice.random() < 0.3}
        present = present - dropped | added
        held[number] = set(present)
        records.add(TASK, number, sorted(added), sorted(dropped))
        if dice.random() < 0.2:
            last = dice.choice([INITIAL, *held])
            held = {n: keys for n, keys in held.items() if n <= last}
            present = set(held.get(last, ()))
            records.go_back(TASK, last)
        if dice.random() < 0.4 and held:
            oldest = dice.choice(list(held))
            held = {n: keys for n, keys in held.items() if n >= oldest}
            records.collect(TASK, held)
            assert records.keys() == set().union(*held.values())
        deleted |= set(records.take_garbage())
        assert deleted.isdisjoint(set().union(*held.values()))
