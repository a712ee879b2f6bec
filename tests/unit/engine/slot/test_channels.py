"""Inboxes and credit: a blocked channel never blocks its neighbours, and nothing comes out of order."""

import pytest

from engine_fakes import message
from snapline.batch import Batch
from snapline.core.messages import Marker, Message
from snapline.core.topology import Channel
from snapline.engine.slot.channels import Inputs, Outputs
from snapline.errors import ProtocolViolation
from snapline.ids import ChannelId, TaskId

X, Y, LOOP = ChannelId("x>t"), ChannelId("y>t"), ChannelId("t>t")


def channels():
    target = TaskId("t")
    return [
        Channel(X, TaskId("x"), target),
        Channel(Y, TaskId("y"), target),
        Channel(LOOP, target, target, feedback=True),
    ]


@pytest.fixture
def inputs():
    return Inputs(channels())


@pytest.fixture
def outputs():
    return Outputs(channels(), credit=2)


def test_what_arrives_is_taken_in_its_order(inputs):
    payloads = [message(1, X), Marker(1), message(2, X)]
    assert [inputs.push(X, payload) for payload in payloads] == [1, 2, 3]
    assert [inputs.pop(X) for _ in payloads] == payloads


def test_an_input_waits_exactly_while_its_inbox_holds_something(inputs):
    inputs.push(Y, message(1, Y))
    inputs.push(X, message(1, X))
    inputs.push(X, message(2, X))
    assert list(inputs.waiting) == [Y, X]
    inputs.pop(Y)
    inputs.pop(X)
    assert list(inputs.waiting) == [X]


def test_a_message_that_does_not_follow_the_last_one_is_a_bug(inputs):
    inputs.check_order(message(5, X), received=4)
    with pytest.raises(ProtocolViolation, match="message 6 where 5 is next"):
        inputs.check_order(message(6, X), received=4)
    with pytest.raises(ProtocolViolation, match="message 4 where 5 is next"):
        inputs.check_order(message(4, X), received=4)


def test_the_first_message_of_a_sender_that_restarted_alone_may_have_any_number(inputs):
    inputs.sever(X)
    inputs.check_order(message(9, X), received=4)
    with pytest.raises(ProtocolViolation):
        inputs.check_order(message(12, X), received=9)


def test_what_a_lost_sender_has_left_is_taken_and_owes_its_next_life_nothing(inputs):
    inputs.push(X, message(7, X))
    inputs.push(X, Marker(1))
    inputs.owe(X)
    inputs.sever(X)
    assert X in inputs.waiting
    assert X in inputs.severed
    inputs.check_order(inputs.pop(X), received=6)
    assert (inputs.owe(X), inputs.taken[X]) == (0, 0)
    inputs.push(X, message(1, X))
    assert X not in inputs.severed, "the next life has spoken"
    inputs.check_order(message(1, X), received=7)
    assert (inputs.owe(X), inputs.taken[X]) == (1, 1)


def test_every_message_taken_is_owed_to_its_sender_until_settled(inputs):
    assert [inputs.owe(X), inputs.owe(X), inputs.owe(Y)] == [1, 2, 1]
    inputs.settle(X)
    assert inputs.owe(X) == 1
    assert inputs.taken == {X: 3, Y: 1}


def test_injected_channel_state_is_taken_first_and_owes_nobody(inputs):
    inputs.inject(X, [message(4, X), message(5, X)])
    inputs.push(X, message(6, X))
    assert [inputs.pop(X).seq for _ in range(3)] == [4, 5, 6]
    assert [inputs.owe(X) for _ in range(3)] == [0, 0, 1]
    assert inputs.taken == {X: 1}


def test_injecting_nothing_leaves_nothing_to_wait_for(inputs):
    inputs.inject(X, [])
    assert not inputs.waiting


def test_the_longest_inbox_is_found_and_none_is_of_length_zero(inputs):
    inputs.push(X, message(1, X))
    inputs.push(Y, message(1, Y))
    inputs.push(Y, message(2, Y))
    assert inputs.longest([X, Y, LOOP]) == 2
    assert inputs.longest([]) == 0


def test_a_channel_without_credit_must_wait_and_its_neighbour_need_not(outputs):
    outputs.spend(X)
    assert outputs.may_send(X)
    outputs.spend(X)
    assert not outputs.may_send(X)
    assert outputs.may_send(Y)


def test_credit_comes_back_with_what_the_receiver_took(outputs):
    outputs.spend(X)
    outputs.spend(X)
    outputs.refund(X, 1)
    assert outputs.may_send(X)
    outputs.spend(X)
    assert not outputs.may_send(X)


def test_a_back_edge_never_waits_for_credit(outputs):
    for _ in range(100):
        outputs.spend(LOOP)
    assert outputs.may_send(LOOP)
    assert outputs.sent == {LOOP: 100}


def test_a_receiver_that_restarts_alone_has_room_again(outputs):
    outputs.spend(X)
    outputs.spend(X)
    outputs.sever(X)
    assert outputs.sent == {X: 0}
    assert outputs.credit[X] == 2


def of_form(seq, **columns):
    return Message(X, seq, 1, Batch.of(**columns))


@pytest.mark.parametrize(
    ("behind", "taken"),
    [
        ([of_form(2, a=[1, 2]), of_form(3, a=[3])], 2),
        ([of_form(2, a=[1, 2]), of_form(3, a=[3, 4])], 1),  # too many
        ([of_form(2, a=[1]), Marker(1), of_form(3, a=[2])], 1),
        ([of_form(2, b=[1])], 0),
        ([of_form(2, a=[0.5])], 0),
        ([Message(X, 2, 1, Batch({}, 0)), of_form(3, a=[1])], 2),  # a watermark alone has no form
        ([of_form(3, a=[1])], 0),  # not the next one
    ],
)
def test_taken_together_is_what_fits_and_has_one_form_up_to_a_marker(inputs, behind, taken):
    for payload in behind:
        inputs.push(X, payload)
    first = of_form(1, a=[7])
    assert inputs.gather(first, [], {}, 4, lambda message: True) == [first, *behind[:taken]]
    assert list(inputs.inbox[X]) == behind[taken:]
    assert (X in inputs.waiting) == (taken < len(behind))


def test_what_is_not_accepted_stays_with_all_behind_it(inputs):
    behind = [of_form(seq, a=[seq]) for seq in (2, 3, 4)]
    for payload in behind:
        inputs.push(X, payload)
    first = of_form(1, a=[7])
    assert inputs.gather(first, [], {}, 9, lambda m: m.seq != 3) == [first, *behind[:1]]
    assert list(inputs.inbox[X]) == behind[1:]


def test_messages_of_other_inputs_are_taken_along_in_the_order_of_each(inputs):
    behind = [of_form(2, a=[2]), of_form(3, a=[3])]
    beside = [Message(Y, seq, 1, Batch.of(a=[seq])) for seq in (8, 9)]
    for payload in (*behind, *beside):
        inputs.push(payload.channel, payload)
    first = of_form(1, a=[1])
    assert inputs.gather(first, [Y], {X: 0, Y: 7}, 4, lambda m: True) == [first, *behind, beside[0]]
    assert list(inputs.waiting) == [Y], "four records are enough"


@pytest.mark.parametrize(
    "other", [Marker(1), Message(Y, 9, 1, Batch.of(a=[1])), Message(Y, 8, 1, Batch.of(b=[1]))]
)
def test_what_is_not_next_or_has_another_form_is_not_taken_along(inputs, other):
    inputs.push(Y, other)
    first = of_form(1, a=[1])
    assert inputs.gather(first, [Y], {X: 0, Y: 7}, 4, lambda m: True) == [first]


def test_nothing_is_taken_along_from_a_sender_that_restarts_alone(inputs):
    inputs.sever(Y)
    inputs.push(Y, Message(Y, 8, 1, Batch.of(a=[1])))
    first = of_form(1, a=[1])
    assert inputs.gather(first, [Y], {X: 0, Y: 7}, 4, lambda m: True) == [first]
