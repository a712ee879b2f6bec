"""What is written of a dataclass follows from its fields, and comes back equal or not at all."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from snapline.core.events import Command, Timer
from snapline.core.forms import Forms
from snapline.core.messages import CheckpointMeta, initial_meta
from snapline.errors import ProtocolError
from snapline.ids import ChannelId, CheckpointNo, Seq, TaskId
from snapline.protocols.none import NONE

CHANNEL = ChannelId("bids/0>count/1#größe")
META = CheckpointMeta(
    TaskId("count/1"),
    (3 << 32) + 7,
    sent={CHANNEL: 5},
    epoch=3,
    channel_state={CHANNEL: (2, 5)},
    offsets={0: 17, 3: 0},
    forced=True,
    parent=(3 << 32) + 6,
    digest="ab",
)
FORM = Forms().of(CheckpointMeta)
TEXT = json.dumps(FORM.write(META))


@pytest.mark.parametrize("meta", [META, initial_meta(TaskId("bids/0"))])
def test_the_metadata_of_a_checkpoint_comes_back_as_it_was(meta):
    assert FORM.read(json.loads(json.dumps(FORM.write(meta)))) == meta


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (TEXT, "[]"),
        (TEXT, "null"),
        ('"epoch": 3, ', ""),
        ('"epoch": 3', '"epoch": 3, "surprise": 1'),
        ('"epoch": 3', '"epoch": true'),
        ('"epoch": 3', '"epoch": "3"'),
        ('"forced": true', '"forced": 1'),
        ('"3": 0', '"03": 0'),
        ("[2, 5]", "[2, 5, 6]"),
        ("[2, 5]", "2"),
    ],
)
def test_what_is_no_metadata_is_refused(right, wrong):
    assert right in TEXT
    with pytest.raises(ValueError, match=r"where a|with the fields|argument"):
        FORM.read(json.loads(TEXT.replace(right, wrong)))


@dataclass(frozen=True, slots=True)
class Ask(Command):
    checkpoint: CheckpointNo
    through: Mapping[ChannelId, Seq]
    tasks: tuple[TaskId, ...] = ()


@dataclass(frozen=True, slots=True)
class Later(Timer):
    checkpoint: CheckpointNo


@dataclass(frozen=True, slots=True)
class Half(Command):
    share: float


@dataclass(frozen=True, slots=True)
class Call(Command):
    code: object


@dataclass(frozen=True, slots=True)
class Typed(Command):
    type: str


@dataclass(slots=True)
class Loose:
    pass


class Bare(Command):
    checkpoint: CheckpointNo


@dataclass(frozen=True, slots=True)
class Unhashable(Timer):
    through: Mapping[ChannelId, Seq]


@dataclass(frozen=True, slots=True)
class TriggerRound(Command):
    checkpoint: CheckpointNo


def test_a_protocol_brings_commands_and_timers_of_its_own():
    brought = replace(NONE, commands=(Ask,), timers=(Later,))
    assert Ask in brought.all_commands
    assert Later in brought.all_timers
    assert (Ask(1, {}).begins, Ask(1, {}).aborts, Later.is_timeout) == (None, None, False)


@pytest.mark.parametrize(
    ("brought", "why"),
    [
        ({"commands": (Half,)}, "the command Half: there is no form for float; its fields may be"),
        ({"commands": (Call,)}, "the command Call: there is no form for object"),
        ({"commands": (Typed,)}, "the command Typed: Typed has a field 'type'"),
        ({"commands": (Loose,)}, "the command Loose: derive it from snapline.core.events.Command"),
        ({"commands": (Later,)}, "the command Later: derive it from snapline.core.events.Command"),
        ({"commands": (Bare,)}, "the command Bare: make it a dataclass"),
        ({"commands": (Ask, Ask)}, "the command Ask: another one has this name already"),
        ({"commands": (TriggerRound,)}, "the command TriggerRound: another one has this name"),
        ({"commands": (Ask(1, {}),)}, r"the command Ask\(.*derive it from"),
        ({"timers": (Unhashable,)}, "the timer Unhashable: the fields of a timer must be hashable"),
    ],
)
def test_what_could_not_be_written_is_refused_as_soon_as_the_protocol_is_defined(brought, why):
    with pytest.raises(ProtocolError, match=f"the protocol none brings {why}"):
        replace(NONE, **brought)
