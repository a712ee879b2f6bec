"""Data frames come back as they were, without copies; garbage raises WireError and nothing else."""

import struct
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from snapline.batch import Batch, Varlen, Words, bytes_of
from snapline.core.messages import Marker, Message
from snapline.engine.control import Credit, Frame
from snapline.ids import ChannelId
from snapline.net.framing import (
    CREDIT,
    HEAD,
    MARKER,
    MESSAGE,
    Packet,
    WireError,
    read_head,
)
from snapline.runtime.wire.codec import Wire

CHANNELS = [ChannelId(f"a/{k}>b/{k}#größe") for k in range(5)]
WIRE = Wire(CHANNELS)
NUMBERS = Batch({"bidder": np.arange(1000), "price": np.arange(1000) * 7})
MIXED = Batch(
    {
        "n": np.arange(3),
        "x": np.asarray([0.5, -1.0, 2.0]),
        "small": np.asarray([1, 2, 3], np.int16),
        "flag": np.asarray([True, False, True]),
        "big_endian": np.asarray([1, 2, 3], ">i8"),
        "when": np.asarray([1, 2, 3], "datetime64[ms]"),
        "code": np.asarray([b"ab", b"c", b""], "S2"),
        "word": Words(np.asarray([1, 0, 1], np.int32), ("ja", "größe", "")),
        "text": Varlen.of("str", ["", "a", "ü" * 300]),
        "raw": Varlen.of("bytes", [b"\0", b"", b"xyz"]),
        "ids": Varlen.of("list", [[1, 2], [], [-3]]),
    }
)
BATCHES = {
    "numbers": NUMBERS,
    "one": NUMBERS.slice(7, 8),
    "none": NUMBERS.slice(0, 0),
    "strided": Batch({"a": np.arange(2000)[::2], "b": np.arange(1000)[::-1]}),
    "strided, few": Batch({"a": np.arange(20)[::2], "b": np.arange(10)[::-1]}),
    "mixed": MIXED,
    "mixed slice": MIXED.slice(1, 3),
    "mixed none": Batch.empty(MIXED.schema),
    "mixed large": MIXED.take(np.tile(np.arange(3), 1000)),
    "no columns": Batch({}, 5),
}


def frame(batch: Batch, header: bytes = b"", watermark: int | None = 17) -> Frame:
    message = Message(CHANNELS[3], 1 << 40, 9, batch, header, watermark)
    return Frame(CHANNELS[3], (9, 2, 3), message)


def joined(packet: Packet) -> bytes:
    data = b"".join(bytes_of(buffer) for buffer in packet.buffers)
    assert len(data) == packet.size
    return data


def carried(data: bytes) -> Any:
    """What the other end makes of the bytes of one frame."""
    kind, size = read_head(data, 0, 1 << 30)
    assert HEAD.size + size == len(data)
    return WIRE.unpack(kind, memoryview(data)[HEAD.size :])


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("header", [b"", b"clocks", b"x" * 4001])
@pytest.mark.parametrize("watermark", [None, -2, 1 << 62])
def test_a_message_comes_back_as_it_was(name, header, watermark):
    sent = frame(BATCHES[name], header, watermark)
    back = carried(joined(WIRE.pack(sent)))
    assert back == sent
    assert back.payload.batch.schema == sent.payload.batch.schema


@pytest.mark.parametrize(
    "payload", [Marker((3 << 32) + 1), Marker(5, overtaking=True), Credit(64), Credit(0)]
)
def test_markers_and_credit_come_back_as_they_were(payload):
    sent = Frame(CHANNELS[0], (1, 1, 1 << 31), payload)
    assert carried(joined(WIRE.pack(sent))) == sent


def test_the_columns_of_a_large_batch_are_sent_from_where_they_are():
    _, bidder, price = WIRE.pack(frame(NUMBERS)).buffers
    assert np.shares_memory(bidder, NUMBERS["bidder"])
    assert np.shares_memory(price, NUMBERS["price"])


def test_a_small_message_is_one_buffer():
    assert len(WIRE.pack(frame(BATCHES["one"])).buffers) == 1


@pytest.mark.parametrize("name", ["numbers", "mixed large"])
def test_received_columns_are_aligned_views_that_nobody_can_write(name):
    data = joined(WIRE.pack(frame(BATCHES[name], b"odd")))
    received = np.frombuffer(data, np.uint8)
    batch = carried(data).payload.batch
    for column in batch.columns.values():
        buffer = column if isinstance(column, np.ndarray) else getattr(column, "codes", None)
        buffer = column.values if buffer is None else buffer
        assert np.shares_memory(buffer, received)
        assert buffer.flags.aligned
        assert not buffer.flags.writeable


def test_a_batch_whose_columns_differ_in_length_is_not_sent():
    for columns in ({"a": np.arange(3), "b": np.arange(4)}, {"a": np.ones(3), "b": np.ones(4)}):
        with pytest.raises(WireError, match="differ in length"):
            WIRE.pack(frame(Batch(columns)))


def test_python_objects_are_not_sent():
    with pytest.raises(WireError, match="object"):
        WIRE.pack(frame(Batch({"a": np.asarray([{}, []], object)})))


def test_a_channel_that_the_topology_does_not_have_is_refused():
    data = joined(WIRE.pack(frame(NUMBERS)))
    with pytest.raises(WireError):
        Wire(CHANNELS[:3]).unpack(1, data[HEAD.size :])


def body_of(schema: bytes, columns: bytes, rows: int = 1) -> bytes:
    """A message that is well-formed but for what the test does to it."""
    return struct.pack("<IIIIQqIIII", 0, 1, 1, 1, 1, 0, 1, rows, len(schema), 0) + schema + columns


ONE_COLUMN = b"\x01\0" + b"\x01\x05" + b"n" + b"int64" + bytes(6)
TWO_COLUMNS = b"\x02\0" + b"\x01\x05nint64" + b"\x01\x05mint64" + bytes(6)
TEXT = b"\x01\0" + b"\x01\x03" + b"t" + b"str" + bytes(0)


def test_a_message_put_together_by_hand_is_read():
    back = WIRE.unpack(MESSAGE, body_of(ONE_COLUMN, bytes([9]) + bytes(7)))
    assert back.payload.batch.to_pydict() == {"n": [9]}
    back = WIRE.unpack(MESSAGE, body_of(TWO_COLUMNS, bytes(16)))
    assert back.payload.batch.to_pydict() == {"n": [0], "m": [0]}
    back = WIRE.unpack(MESSAGE, body_of(TEXT, struct.pack("<QQQ8s", 2, 0, 2, b"ab")))
    assert back.payload.batch.to_pydict() == {"t": ["ab"]}


@pytest.mark.parametrize(
    ("schema", "columns"),
    [
        pytest.param(ONE_COLUMN[:-1] + b"x", bytes(8), id="schema with something behind it"),
        pytest.param(ONE_COLUMN[:-6], bytes(8), id="schema not filled up"),
        pytest.param(TWO_COLUMNS.replace(b"m", b"n"), bytes(16), id="two columns of one name"),
        pytest.param(ONE_COLUMN.replace(b"int64", b"objec"), bytes(8), id="unknown kind"),
        pytest.param(TEXT, struct.pack("<QQQ8s", 2, 0, 3, b"ab"), id="offsets beyond the values"),
        pytest.param(TEXT, struct.pack("<QQQ8s", 2, 1, 2, b"ab"), id="offsets not from 0"),
        pytest.param(TEXT, struct.pack("<QQQ", 1 << 63, 0, 1 << 63), id="more values than bytes"),
    ],
)
def test_a_batch_that_is_not_written_as_ours_is_a_wire_error(schema, columns):
    with pytest.raises(WireError):
        WIRE.unpack(MESSAGE, body_of(schema, columns))


@pytest.mark.parametrize(("kind", "flag"), [(MARKER, 2), (CREDIT, 1)])
def test_a_flag_that_means_nothing_is_a_wire_error(kind, flag):
    with pytest.raises(WireError):
        WIRE.unpack(kind, struct.pack("<IIIIQQ", 0, 1, 1, 1, 5, flag))


VALID = {name: joined(WIRE.pack(frame(batch, b"head"))) for name, batch in BATCHES.items()}
VALID["marker"] = joined(WIRE.pack(Frame(CHANNELS[0], (1, 2, 3), Marker(5))))


@given(kind=st.integers(0, 255), body=st.binary(max_size=300))
def test_random_bytes_raise_wire_errors_and_nothing_else(kind, body):
    with pytest.raises(WireError):
        WIRE.unpack(kind, body)


@given(name=st.sampled_from(sorted(VALID)), data=st.data())
def test_a_flipped_bit_is_a_wire_error_or_another_frame(name, data):
    damaged = bytearray(VALID[name])
    # Mostly where the structure is: in the head, the sizes, the schema.
    bit = data.draw(st.integers(0, min(len(damaged), 400) * 8 - 1))
    damaged[bit // 8] ^= 1 << bit % 8
    with suppress(WireError):
        carried_anyhow(bytes(damaged))


@given(name=st.sampled_from(sorted(VALID)), data=st.data())
def test_a_cut_or_lengthened_body_is_a_wire_error(name, data):
    whole = VALID[name]
    kind, _ = read_head(whole, 0, 1 << 30)
    size = data.draw(st.integers(0, len(whole) + 16))
    assume(size != len(whole) - HEAD.size)
    with pytest.raises(WireError):
        WIRE.unpack(kind, (whole + bytes(64))[HEAD.size : HEAD.size + size])


@given(name=st.sampled_from(sorted(VALID)), data=st.data())
def test_garbage_in_the_middle_is_a_wire_error_or_another_frame(name, data):
    damaged = bytearray(VALID[name])
    at = data.draw(st.integers(8, max(8, min(len(damaged), 400) - 8)))
    noise = data.draw(st.binary(min_size=1, max_size=8))
    damaged[at : at + len(noise)] = noise
    with suppress(WireError):
        carried_anyhow(bytes(damaged))


def carried_anyhow(data: bytes) -> object:
    kind, size = read_head(data, 0, 1 << 30)
    return WIRE.unpack(kind, memoryview(data)[HEAD.size : HEAD.size + size])
