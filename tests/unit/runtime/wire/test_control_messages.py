"""Every control message comes back as it was; nothing else is understood."""

import json
from contextlib import suppress
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapline.core import events
from snapline.core.messages import CheckpointMeta
from snapline.engine import control
from snapline.ids import ChannelId, TaskId
from snapline.journal.happenings import CheckpointMoments
from snapline.journal.loss_happenings import GroupLost
from snapline.metrics.second import Usage, Used, Volume
from snapline.net.framing import CONTROL, HEAD, WireError
from snapline.protocols.synchronous import SYNCHRONOUS, CaptureWorld, Proceed, StopWorld
from snapline.protocols.unaligned import UNALIGNED
from snapline.recovery.replay import Origin, ReplayPart
from snapline.runtime.wire import control_messages
from snapline.runtime.wire.codec import Wire

CHANNEL = ChannelId("bids/0>count/1#größe")
TASK = TaskId("count/1")
META = CheckpointMeta(
    TASK,
    (3 << 32) + 7,
    sent={CHANNEL: 5},
    received={ChannelId("a/0>b/1"): 9},
    epoch=3,
    incarnation=2,
    channel_state={CHANNEL: (2, 5)},
    offsets={0: 17, 3: 0},
    position=40,
    watermark=1 << 62,
    forced=True,
    parent=(3 << 32) + 6,
    bytes=1000,
    digest="ab",
)
PLAN = (ReplayPart(CHANNEL, 2, 5, Origin.RECEIVER), ReplayPart(CHANNEL, 5, 9, Origin.LOG))
COMMANDS = [
    events.TriggerRound(7),
    events.AbortRound(8),
    StopWorld(9),
    CaptureWorld(10, {CHANNEL: 4}),
    Proceed(11),
]
RESTORE = control.Restore(
    4,
    {0: 1, 1: 3},
    {TASK: (META, META), TaskId("sum/1"): ()},
    {CHANNEL: 5},
    PLAN,
    alone=True,
    number=1,
)
MESSAGES = [
    control_messages.Hello("slot", "brisk-otter", 4711, "::1", 65535),
    control_messages.Assign(1, 3),
    control_messages.BecomeSpare(),
    control_messages.Leave("the run is over: größe"),
    control_messages.Peers(
        {0: control_messages.Peer(1, "127.0.0.1", 4000), 12: control_messages.Peer(2, "::1", 4001)}
    ),
    control_messages.Begin(1_763_246_400_000),
    control_messages.Heartbeat(17),
    control_messages.Computing(),
    control_messages.Pulse(
        3, True, 500, 498, 7, Volume(1, 2, 3, 4, 5, 6), ((40, 498), (1200, 1)), (2500,), 9, 17
    ),
    control_messages.Pulse(0, False, 0, 0, 0, Volume(), (), ()),
    control_messages.Pulse(0, True, 0, 0, 0, Volume(), (), (), used=Used(9, 8, Usage(puts=7))),
    control_messages.Lease(17),
    control_messages.PeerHello(0, 2),
    control_messages.LinkLost(1, 3),
    control_messages.Failed(
        3, "KeyError", "'colour'", "map", "flow.py, line 7", "message 3 of a/0>b/1"
    ),
    control_messages.Slow(500, 2_000),
    control_messages.CutLink({1: 2, 3: 1}, True, 500, 2_000),
    RESTORE,
    control.Go(4),
    control.Severed(4, 1, 2),
    control.Replaced(4, 1),
    *[control.Instruct(4, (TASK, TaskId("sum/1")), command) for command in COMMANDS],
    control.Probe(4, 2),
    control.HoldSources(4, True),
    control.Prune(4, {CHANNEL: 90}),
    control.Stop(),
    control.Restored(4),
    control.Restored(4, {TASK: ("a", "b")}, (GroupLost(TASK, "join/left", 64),), 1),
    control.Met(4, 1, 2),
    control.Unreadable(4, TASK, 9),
    control.Stored(4, META),
    control.Stored(4, CheckpointMeta(TASK, 1)),
    control.Stored(4, META, CheckpointMoments(9, None, 1, 2, 3, 4)),
    control.NotStored(4, TASK, 9),
    control.TaskPaused(4, events.Paused(TASK, {CHANNEL: 3}, {})),
    control.InputRead(4),
    control.Counters(4, 2, {CHANNEL: 3}, {}, {CHANNEL: 30}, True, {TASK: 7}),
    control.Pressure(4, False),
]


WIRE = Wire((), SYNCHRONOUS.all_commands)


def text_of(message: control_messages.ControlMessage) -> bytes:
    (data,) = WIRE.pack(message).buffers
    return bytes(data)[HEAD.size :]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_control_message_comes_back_as_it_was(message):
    assert WIRE.unpack(CONTROL, text_of(message)) == message
    assert WIRE.unpack(CONTROL, memoryview(text_of(message))) == message


def test_no_control_message_was_forgotten():
    said = {type(message) for message in MESSAGES}
    assert said == {
        *get_args(control_messages.Greeting),
        *get_args(control.Order),
        *get_args(control.Report),
    }
    assert {type(command) for command in COMMANDS} == set(SYNCHRONOUS.all_commands)


def test_a_command_of_another_protocol_is_not_understood():
    text = text_of(control.Instruct(4, (TASK,), StopWorld(9)))
    with pytest.raises(WireError, match="called 'StopWorld'"):
        Wire((), UNALIGNED.all_commands).unpack(CONTROL, text)


def test_numpy_integers_become_ordinary_ones():
    back = WIRE.unpack(CONTROL, text_of(control.Prune(np.int64(4), {CHANNEL: np.int64(9)})))
    assert type(back.epoch) is int
    assert back == control.Prune(4, {CHANNEL: 9})


PEERS = b'{"type": "Peers", "lives": {"0": {"incarnation": 1, "host": "", "port": 1}}}'
INSTRUCT = (
    b'{"type": "Instruct", "epoch": 1, "tasks": [], '
    b'"command": {"type": "AbortRound", "checkpoint": 1}}'
)
WRONG = {
    "empty": b"",
    "not utf-8": b"\xff\xfe[]",
    "not json": b"[Go]",
    "no object": b'["Go", 1]',
    "no name": b'{"epoch": 1}',
    "unknown": b'{"type": "os.system", "epoch": 1}',
    "name no string": b'{"type": ["Go"], "epoch": 1}',
    "field missing": b'{"type": "Go"}',
    "field unknown": b'{"type": "Go", "epoch": 1, "x": 2}',
    "bool for int": b'{"type": "Go", "epoch": true}',
    "float for int": b'{"type": "Go", "epoch": 1.0}',
    "null for int": b'{"type": "Go", "epoch": null}',
    "int for bool": b'{"type": "Pressure", "epoch": 1, "high": 1}',
    "key no number": PEERS.replace(b"0", b"x"),
    "key padded": PEERS.replace(b"0", b"01"),
    "list for dict": b'{"type": "Prune", "epoch": 1, "through": []}',
    "no such command": INSTRUCT.replace(b"AbortRound", b"Go"),
    "command no object": INSTRUCT.replace(b'{"type": "AbortRound", "checkpoint": 1}', b"1"),
    "too deep": b"[" * 100_000,
    "too many digits": b'{"type": "Go", "epoch": ' + b"9" * 10_000 + b"}",
}


@pytest.mark.parametrize("text", [PEERS, INSTRUCT])
def test_the_texts_that_are_made_wrong_are_right_before(text):
    assert WIRE.unpack(CONTROL, text)


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_control_message_is_a_wire_error(name):
    with pytest.raises(WireError):
        WIRE.unpack(CONTROL, WRONG[name])


def test_an_unknown_origin_is_a_wire_error():
    with pytest.raises(WireError):
        WIRE.unpack(CONTROL, text_of(RESTORE).replace(b'"receiver"', b'"nowhere"'))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=9,
)


@given(
    name=st.sampled_from([type(message).__name__ for message in MESSAGES]),
    fields=st.dictionaries(st.text(max_size=9), JSON),
)
def test_random_fields_are_a_wire_error_or_a_control_message(name, fields):
    with suppress(WireError):
        WIRE.unpack(CONTROL, json.dumps({"type": name, **fields}).encode())


@given(message=st.sampled_from(MESSAGES), data=st.data())
def test_a_damaged_text_is_a_wire_error_or_another_control_message(message, data):
    text = bytearray(text_of(message))
    at = data.draw(st.integers(0, len(text) - 1))
    text[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    with suppress(WireError):
        WIRE.unpack(CONTROL, bytes(text))
