"""Compressed forms give back what they were made of, and say so when they cannot."""

import struct
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapline.batch import Batch, Varlen, Words
from snapline.core.messages import Message
from snapline.errors import ObjectDamaged
from snapline.ids import ChannelId, TaskId
from snapline.storage import codec, packing
from snapline.storage.api import Life
from snapline.storage.files.log import FileLogs
from snapline.storage.packing import pack, unpack

CHANNEL = ChannelId("bids/0>count/1")
BATCH = Batch(
    {
        "n": np.arange(500),
        "word": Words(np.zeros(500, np.int32), ("ja", "nein")),
        "text": Varlen.of("str", ["ü"] * 500),
        "ids": Varlen.of("list", [[1, 2], []] * 250),
    }
)
NOISE = Batch({"x": np.random.default_rng(1).integers(0, 1 << 62, 500)})
CODECS = pytest.mark.parametrize("codec", [packing.FAST, packing.SMALL])


def whole(pieces):
    return b"".join(bytes(piece) for piece in pieces)


@settings(max_examples=60, deadline=None)
@given(
    pieces=st.lists(st.binary(max_size=40) | st.sampled_from([b"a" * 100, bytes(37)]), max_size=8),
    block=st.sampled_from([1, 7, 64, packing.BLOCK_BYTES]),
    codec=st.sampled_from([packing.FAST, packing.SMALL]),
)
def test_bytes_come_back_however_they_are_cut_into_pieces_and_blocks(pieces, block, codec):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "BLOCK_BYTES", block)
        packed = whole(pack(pieces, codec))
        assert unpack(memoryview(packed), codec) == b"".join(pieces)


@CODECS
def test_arrays_are_packed_as_the_bytes_that_they_are(codec):
    arrays = [np.arange(1000), np.zeros(3_000_000, np.int8), np.ones(5, bool)]
    packed = whole(pack(arrays, codec))
    assert len(packed) < 30_000
    assert unpack(memoryview(packed), codec) == b"".join(map(bytes, arrays))


@CODECS
def test_a_block_that_would_become_larger_stays_as_it_is(codec):
    noise = np.random.default_rng(1).bytes(4_000)
    packed = whole(pack([noise], codec))
    assert packed == struct.pack("<II", len(noise), len(noise)) + noise


@pytest.mark.parametrize(
    "packed",
    [
        struct.pack("<II", 100, 3) + b"abc",  # not what the codec made
        struct.pack("<II", 10, 20) + bytes(20),  # more is kept than there was
        struct.pack("<II", packing.BLOCK_BYTES + 1, 3) + b"abc",
        struct.pack("<II", 3, 3) + b"ab",
        b"abc",
    ],
)
@CODECS
def test_what_is_no_packed_form_is_an_error_and_not_a_crash(packed, codec):
    with pytest.raises((ValueError, struct.error)):
        unpack(memoryview(packed), codec)


@pytest.mark.parametrize("header", [b"", b"clocks" * 30])
@pytest.mark.parametrize("batch", [BATCH, NOISE, BATCH.slice(1, 3), Batch({})])
def test_a_compressed_message_comes_back_and_shows_its_number_unread(batch, header):
    message = Message(CHANNEL, 7, 3, batch, header, 99)
    data = whole(codec.message_pieces(message, compress=True))
    assert codec.decode_message(data) == message
    assert codec.peek_message(data) == (CHANNEL, 7, 3)


def test_a_message_is_compressed_if_that_is_worth_it():
    def size(batch, **how):
        return len(whole(codec.message_pieces(Message(CHANNEL, 1, 1, batch), **how)))

    assert size(BATCH, compress=True) * 2 < size(BATCH)
    few = Batch.of(n=[1, 2])
    assert size(few, compress=True) == size(few)


def test_what_a_log_keeps_of_a_message_is_counted_alike_with_and_without_compression(tmp_path):
    """Records and header count, and neither channel nor numbers: else small messages seem to grow."""
    few, many = Message(CHANNEL, 1, 1, Batch.of(n=[1, 2]), b"clock"), Message(CHANNEL, 2, 1, BATCH)
    plain, packed = (
        [log.append(few), log.append(many)]
        for log in (
            FileLogs(tmp_path / name).open(Life(TaskId("bids/0"), 1, 1), compress=name == "packed")
            for name in ("plain", "packed")
        )
    )
    assert plain[0] == packed[0] == 21
    assert plain[1] == BATCH.nbytes
    assert packed[1] * 2 < plain[1]


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("count", [0, 3])
def test_a_compressed_snapshot_comes_back_as_it_was(full, count):
    messages = tuple(Message(CHANNEL, seq, 1, BATCH, b"h") for seq in range(count))
    parts = {"a": BATCH, "é": NOISE, "": Batch({})}
    plain = codec.encode_snapshot(full, parts, b"memo", messages)
    small = codec.encode_snapshot(full, parts, b"memo", messages, compress=True)
    assert small.size < plain.size * 0.8
    assert small.digest == codec.digest_of(bytes(small))
    found = codec.decode_snapshot(bytes(small))
    assert found == codec.StoredSnapshot(full, parts, b"memo", messages)
    assert not found.parts["a"]["n"].flags.writeable


def test_a_compressed_snapshot_that_is_cut_anywhere_is_damaged(monkeypatch):
    monkeypatch.setattr(packing, "BLOCK_BYTES", 64)
    data = bytes(codec.encode_snapshot(True, {"a": BATCH.slice(0, 9)}, b"memo", [], compress=True))
    assert data[:4] == b"SNZ1"
    for size in range(len(data)):
        with pytest.raises(ObjectDamaged):
            codec.decode_snapshot(data[:size])
    with pytest.raises(ObjectDamaged):
        codec.decode_snapshot(data + b"!")


def test_a_slot_does_not_load_arrow_unless_it_compresses():
    program = (
        "import sys; import snapline.runtime.slot.process; "
        "import snapline.storage.codec; print('pyarrow' in sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "False"
