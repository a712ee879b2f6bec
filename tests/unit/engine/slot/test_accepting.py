"""Which messages a task accepts, to be delivered together, and of which its protocol is told."""

from types import SimpleNamespace

import pytest

from snapline.batch import Batch
from snapline.core.effects import Deliver
from snapline.core.messages import Message
from snapline.engine.slot.task import Task
from snapline.ids import ChannelId

MESSAGE = Message(ChannelId("a/0>b/0"), 1, 1, Batch({}, 0))


def accepts(*, journals=False, news=False, forces=False):
    """Whether a message is accepted, and whether the protocol was told of it."""
    told = []
    protocol = SimpleNamespace(
        learns_nothing=lambda message: not news and not forces,
        only_delivers=lambda message: not forces,
    )
    shell = SimpleNamespace(journals_messages=journals, performing=lambda effect: None)

    def ask(event):
        told.append(event.message)
        return (Deliver(event.message),)

    task = SimpleNamespace(
        only_delivers=False, protocol=protocol, host=SimpleNamespace(shell=shell), _ask=ask
    )
    return Task.accept(task, MESSAGE), told == [MESSAGE]


@pytest.mark.parametrize("journals", [False, True])
def test_a_message_that_forces_something_is_not_accepted(journals):
    assert accepts(forces=True, news=True, journals=journals) == (False, False)


@pytest.mark.parametrize("journals", [False, True])
def test_a_protocol_is_told_of_news(journals):
    assert accepts(news=True, journals=journals) == (True, True)


def test_a_protocol_is_not_told_of_what_it_knows_unless_a_journal_is_to_have_it():
    assert accepts() == (True, False)
    assert accepts(journals=True) == (True, True)
