"""A slot that is told again to restore in the same epoch: what is left of the order before does no harm."""

from dataclasses import replace

import pytest

from engine_fakes import A, ShellSpy, job, meta
from snapline.batch import Batch
from snapline.engine.control import Restore
from snapline.engine.groups.index import StoredGroup
from snapline.engine.groups.loading import GroupLoader
from snapline.engine.shell import RetryAlarm, Ticket
from snapline.engine.slot.slot import Slot
from snapline.storage.codec import encode_snapshot

BASE, NEWEST, OLDER = meta("a", 6), meta("a", 7, parent=6), meta("a", 4)
FIRST = Restore(1, {}, {A: (BASE, NEWEST)}, {}, (), alone=True)


def told(*chain):
    """The order that follows, because a checkpoint could not be read."""
    return replace(FIRST, chains={A: chain}, number=1)


def asked(shell, what="fetch"):
    return [call[1] for call in shell.taken() if call[0] == what]


@pytest.fixture
def slot():
    """A slot that loads two snapshots: it restarts alone."""
    here = Slot(0, 2, job(), ShellSpy())
    here.order(FIRST)
    return here


def ticket(number, kind="fetch", order=0):
    return Ticket(kind, 1, A, number, order)


def group_of(number):
    return StoredGroup("op/rows", number, "a.1.1", 7, 1)


def waiting_for_groups(slot):
    """The groups of the last order, which the slot has begun to load."""
    restoration = slot.restoration
    restoration.groups = GroupLoader(slot.shell, restoration.order, restoration._damaged)
    restoration.groups.begin({A: {("op/rows", 3): group_of(3)}})
    return restoration.groups


def test_every_snapshot_is_asked_for_once_per_order(slot):
    assert asked(slot.shell) == [ticket(6), ticket(7)]
    slot.order(told(BASE))
    assert asked(slot.shell) == [ticket(6, order=1)]


@pytest.mark.parametrize("chain", [(OLDER,), (BASE,)], ids=["another", "shared"])
def test_an_alarm_for_the_order_before_asks_for_nothing(slot, chain):
    slot.failed(ticket(7))
    slot.failed(ticket(6))
    assert asked(slot.shell, "set_alarm") == [RetryAlarm(ticket(7)), RetryAlarm(ticket(6))]
    slot.order(told(*chain))
    slot.shell.taken()
    slot.alarm(RetryAlarm(ticket(7)))
    slot.alarm(RetryAlarm(ticket(6)))
    slot.alarm(RetryAlarm(ticket(0, "fetch group")))
    assert slot.shell.taken() == []


def test_what_failed_for_the_order_before_is_not_tried_again(slot):
    slot.order(told(BASE))
    slot.shell.taken()
    slot.failed(ticket(6))
    slot.failed(ticket(0, "fetch group"))
    assert slot.shell.taken() == []
    slot.failed(ticket(6, order=1))
    slot.alarm(RetryAlarm(ticket(6, order=1)))
    assert asked(slot.shell) == [ticket(6, order=1)]


def test_a_snapshot_that_the_order_before_could_not_read_is_not_reported_for_this_one(slot):
    """It is asked for again: reported as well, it would be given up although it may be there by now."""
    slot.order(told(BASE))
    slot.shell.taken()
    slot.fetched(ticket(6), None)
    assert slot.shell.taken() == []
    slot.fetched(ticket(6, order=1), None)
    assert [report.checkpoint for report in asked(slot.shell, "report")] == [6]


def test_a_group_that_was_loaded_for_the_order_before_is_not_taken_for_another(slot):
    """Groups are asked for by their places in a list, and each order has its own list."""
    slot.order(told(OLDER))
    groups = waiting_for_groups(slot)
    other = bytes(encode_snapshot(True, {"op/rows": Batch.of(n=[9])}, b"", ()))
    slot.fetched(ticket(0, "fetch group"), other)
    assert not groups.loaded
    slot.alarm(RetryAlarm(ticket(5, "fetch group", order=1)))
    slot.alarm(RetryAlarm(ticket(0, "fetch group", order=1)))
    assert asked(slot.shell)[-1:] == [ticket(0, "fetch group", order=1)]


def test_an_alarm_for_a_restoration_that_is_over_is_ignored(slot):
    slot.restoration = None
    slot.shell.taken()
    slot.alarm(RetryAlarm(ticket(7)))
    slot.failed(ticket(7))
    assert slot.shell.taken() == []
