"""The binary forms give back what they were made of, and say so when they cannot."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapline.batch import Batch, Varlen, Words
from snapline.core.messages import CheckpointMeta, Message
from snapline.errors import ObjectDamaged
from snapline.ids import ChannelId, TaskId
from snapline.storage import codec

CHANNEL = ChannelId("bids/0>count/1#größe")
BATCH = Batch(
    {
        "n": np.arange(3),
        "x": np.asarray([0.5, -1.0, 2.0]),
        "flag": np.asarray([True, False, True]),
        "word": Words(np.asarray([1, 0, 1], np.int32), ("ja", "nein")),
        "text": Varlen.of("str", ["", "a", "ü" * 300]),
        "raw": Varlen.of("bytes", [b"\0", b"", b"xyz"]),
        "ids": Varlen.of("list", [[1, 2], [], [-3]]),
    }
)
EMPTY = Batch.empty(BATCH.schema)
META = CheckpointMeta(
    TaskId("count/1"),
    (3 << 32) + 7,
    sent={CHANNEL: 5},
    received={ChannelId("a/0>b/1"): 9},
    epoch=3,
    incarnation=2,
    channel_state={CHANNEL: (2, 5)},
    offsets={0: 17, 3: 0},
    position=40,
    watermark=123,
    forced=True,
    parent=(3 << 32) + 6,
    bytes=1000,
    digest="ab",
)


@given(
    seq=st.integers(1, 2**40),
    epoch=st.integers(1, 2**31),
    header=st.binary(max_size=40),
    watermark=st.none() | st.integers(-2, 1 << 62),
    batch=st.sampled_from([BATCH, EMPTY, BATCH.slice(1, 3), Batch({})]),
)
def test_a_message_comes_back_as_it_was(seq, epoch, header, watermark, batch):
    message = Message(CHANNEL, seq, epoch, batch, header, watermark)
    data = bytes(codec.Pieces(codec.message_pieces(message)))
    assert codec.decode_message(data) == message
    assert codec.decode_message(memoryview(data)).batch.schema == batch.schema
    assert codec.peek_message(data) == (CHANNEL, seq, epoch)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("parts", [{}, {"table": BATCH}, {"a": BATCH, "é": EMPTY, "": Batch({})}])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_snapshot_comes_back_as_it_was(full, parts, count):
    messages = tuple(Message(CHANNEL, seq, 1, BATCH, b"h") for seq in range(count))
    found = codec.decode_snapshot(bytes(codec.encode_snapshot(full, parts, b"memo", messages)))
    assert found == codec.StoredSnapshot(full, parts, b"memo", messages)
    assert list(found.parts) == list(parts)


def test_a_snapshot_cut_anywhere_is_damaged():
    data = bytes(
        codec.encode_snapshot(True, {"table": BATCH}, b"memo", [Message(CHANNEL, 1, 1, BATCH)])
    )
    for size in range(len(data)):
        with pytest.raises(ObjectDamaged):
            codec.decode_snapshot(data[:size])
    with pytest.raises(ObjectDamaged):
        codec.decode_snapshot(data + b"!")
    with pytest.raises(ObjectDamaged, match="not a snapshot"):
        codec.decode_snapshot(b"!" + data[1:])


@given(st.lists(st.binary(max_size=30), max_size=5), st.data())
def test_frames_cut_anywhere_give_a_prefix(payloads, data):
    whole = b"".join(codec.frame(payload) for payload in payloads)
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    found, at = [], 0
    while (payload := codec.unframe(cut, at)) is not None:
        found.append(bytes(payload))
        at += codec.FRAME_OVERHEAD + len(payload)
    assert found == payloads[: len(found)]
    assert len(found) == len(payloads) or len(cut) < len(whole)


def test_a_frame_with_any_byte_changed_is_no_frame():
    whole = codec.frame(b"payload")
    for place in range(len(whole)):
        for bit in range(8):
            changed = bytearray(whole)
            changed[place] ^= 1 << bit
            assert codec.unframe(bytes(changed)) is None


def test_zeros_are_no_frames():
    assert codec.unframe(bytes(100)) is None


def test_equal_objects_have_equal_digests_and_others_do_not():
    assert codec.digest_of(b"a") == codec.digest_of(bytes(bytearray(b"a"))) != codec.digest_of(b"b")
