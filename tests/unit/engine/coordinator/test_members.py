"""Who lives, and who waits for whom: in a rollback of all, and when slots restart alone."""

from dataclasses import replace

import pytest

from engine_fakes import job
from snapline.core.messages import initial_meta
from snapline.engine.control import Met, Replaced, Restore, Severed
from snapline.engine.coordinator.members import Members


@pytest.fixture
def sent():
    return []


@pytest.fixture
def members(sent):
    """Three slots that run, each in its first life."""
    small = job()
    wide = replace(small, deployment=replace(small.deployment, slots=3))
    known = Members(wide, lambda slot, order: sent.append((slot, order)), initial_meta)
    known.incarnations = dict.fromkeys(wide.slots, 1)
    for slot in wide.slots:
        known.register(slot, 1)
    known.await_all()
    for slot in wide.slots:
        known.restored(slot, 1)
    assert known.complete
    return known


def lose(members, *slots):
    """Slots are lost, and are to restart alone; the next life of each is its second."""
    for slot in slots:
        members.lose(slot, 1)
        members.sever(slot, 5, 900)


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
    complete = []
    for slot in (2, 0, 1):
        members.restored(slot, 2)
        complete.append(members.complete)
    assert complete == [False, False, True]


def test_a_slot_that_is_lost_in_a_rollback_must_come_back_before_it_is_complete(members):
    members.await_all()
    members.restored(0, 2)
    members.lose(1, 1)
    members.restored(2, 2)
    assert not members.complete


def test_a_slot_that_restarts_alone_is_severed_restored_introduced_and_let_go(members, sent):
    lose(members, 1)
    assert sent == [(0, Severed(5, 1, 2)), (2, Severed(5, 1, 2))]
    sent.clear()
    members.register(1, 2)
    members.rejoin(1, 5)
    assert sent == [(1, Restore(5, {0: 1, 1: 2, 2: 1}, {}, {}, (), alone=True))]
    sent.clear()
    members.restored(1, 5)
    assert sent == [
        (0, Replaced(5, 1)),
        (1, Replaced(5, 0)),
        (2, Replaced(5, 1)),
        (1, Replaced(5, 2)),
    ]
    assert not members.settled
    members.met(0, Met(5, 1, 2))
    members.met(2, Met(5, 1, 1))  # of its life before
    assert not members.settled
    members.met(2, Met(5, 1, 2))
    assert members.settled == {1: None}


def test_a_slot_that_comes_back_is_told_who_else_is_away_and_waits_for_none_of_them(members, sent):
    lose(members, 1, 2)
    members.register(1, 2)
    sent.clear()
    members.rejoin(1, 5)
    restore = Restore(5, {0: 1, 1: 2, 2: 2}, {}, {}, (), alone=True, away=(2,))
    assert sent == [(1, restore)], "not later: the next life of slot 2 may send something before"
    members.restored(1, 5)
    members.met(0, Met(5, 1, 2))
    assert members.settled == {1: None}
    assert not members.complete


def test_who_is_not_restored_is_introduced_to_nobody_and_learns_later_who_came_back(members, sent):
    lose(members, 1, 2)
    for slot in (1, 2):
        members.register(slot, 2)
        members.rejoin(slot, 5)
    sent.clear()
    members.restored(1, 5)
    assert (2, Replaced(5, 1)) not in sent, "it has no tasks that could take anything"
    members.met(0, Met(5, 1, 2))
    del members.rejoining[1]  # it was let go
    sent.clear()
    members.restored(2, 5)
    assert (2, Replaced(5, 1)) in sent
    assert (1, Replaced(5, 2)) in sent


def test_nobody_waits_for_a_slot_that_was_lost_before_it_had_met_another(members):
    lose(members, 1)
    members.register(1, 2)
    members.rejoin(1, 5)
    members.restored(1, 5)
    members.met(0, Met(5, 1, 2))
    assert not members.settled
    lose(members, 2)
    assert members.settled == {1: None}
