"""Who lives, and whose acknowledgement is awaited: in a rollback of all, and when a slot restarts alone."""

from dataclasses import replace

import pytest

from engine_fakes import job
from snapline.engine.control import Replaced, Restore
from snapline.engine.coordinator.members import Members


@pytest.fixture
def sent():
    return []


@pytest.fixture
def members(sent):
    """Three slots that run, each in its first life."""
    small = job()
    wide = replace(small, deployment=replace(small.deployment, slots=3))
    known = Members(wide, lambda slot, order: sent.append((slot, order)))
    known.incarnations = dict.fromkeys(wide.slots, 1)
    for slot in wide.slots:
        known.register(slot, 1)
    known.await_all()
    for slot in wide.slots:
        known.acknowledge(slot, 1)
    return known


def test_only_the_present_life_of_a_slot_registers(members):
    assert not members.register(1, 2)
    assert members.register(1, 1)


def test_a_life_is_lost_once_and_the_next_one_has_another_number(members):
    assert members.lose(1, 1)
    assert not members.lose(1, 1)
    assert members.incarnations == {0: 1, 1: 2, 2: 1}
    assert list(members.registered) == [0, 2]


def test_everybody_must_acknowledge_an_epoch(members):
    members.await_all()
    assert [members.acknowledge(slot, 2) for slot in (2, 0, 1)] == [False, False, True]


def test_a_slot_that_is_lost_in_a_rollback_must_come_back_before_it_is_complete(members):
    members.await_all()
    members.acknowledge(0, 2)
    members.lose(1, 1)
    assert not members.acknowledge(2, 2)


def test_a_slot_that_restarts_alone_is_restored_then_introduced_then_let_go(members, sent):
    members.lose(1, 1)
    members.rejoining[1] = False
    members.register(1, 2)
    members.rejoin(1, 5, {})
    lives = {0: 1, 1: 2, 2: 1}
    assert sent == [(1, Restore(5, lives, {}, {}, (), alone=True))]
    sent.clear()
    assert not members.acknowledge(1, 5)
    assert sent == [(0, Replaced(5, 1, 2)), (2, Replaced(5, 1, 2))]
    assert not members.acknowledge(0, 5)
    assert members.acknowledge(2, 5)
    assert members.settle() == (1,)
    assert members.settle() == ()


def test_two_slots_that_restart_alone_wait_for_each_other(members, sent):
    for slot in (1, 2):
        members.lose(slot, 1)
        members.rejoining[slot] = False
        members.register(slot, 2)
        members.rejoin(slot, 5, {})
    sent.clear()
    assert not members.acknowledge(1, 5)
    assert sent == [(0, Replaced(5, 1, 2)), (2, Replaced(5, 1, 2))]
    sent.clear()
    assert not members.acknowledge(2, 5)  # its Restore; now the others learn of it
    assert sent == [(0, Replaced(5, 2, 2)), (1, Replaced(5, 2, 2))]
    assert [members.acknowledge(slot, 5) for slot in (2, 0, 0, 1)] == [False, False, False, True]
    assert members.settle() == (1, 2)
