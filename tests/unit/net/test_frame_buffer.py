"""Frames come out of a stream of bytes however it was cut, and nobody's frame changes afterwards."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapline.net.frame_buffer import FrameBuffer
from snapline.net.framing import CONTROL, HEAD, MAGIC, VERSION, WireError, packet

SIZES = st.sampled_from([0, 8, 24, 32, 40, 256, 1000, 1024, 1032, 5000])


def body(number: int, size: int) -> bytes:
    return bytes([number % 251]) * size


def feed(buffer: FrameBuffer, data: bytes) -> list[tuple[int, bytes | memoryview]]:
    frames = []
    while data:
        space = buffer.space()
        assert len(space)
        count = min(len(space), len(data))
        space[:count] = data[:count]
        buffer.filled(count)
        data = data[count:]
        while frame := buffer.next():
            frames.append(frame)
    return frames


@given(sizes=st.lists(SIZES, max_size=30), cuts=st.lists(st.integers(1, 3000), min_size=1))
def test_frames_come_out_as_they_went_in_however_the_stream_is_cut(sizes, cuts):
    bodies = [body(n, size - size % 8) for n, size in enumerate(sizes)]
    stream = b"".join(bytes(packet(CONTROL, each).buffers[0]) for each in bodies)
    buffer = FrameBuffer(size=1024)
    frames, at = [], 0
    while at < len(stream):
        step = cuts[at % len(cuts)]
        frames += feed(buffer, stream[at : at + step])
        at += step
    assert [kind for kind, _ in frames] == [CONTROL] * len(bodies)
    assert [bytes(each) for _, each in frames] == bodies  # also those given out long ago
    assert not buffer.midway


def test_a_large_body_is_a_view_that_cannot_be_written_and_a_small_one_is_a_copy():
    buffer = FrameBuffer(size=1024)
    (_, large), (_, small) = feed(
        buffer, packet(CONTROL, body(1, 512)).buffers[0] + packet(CONTROL, body(2, 8)).buffers[0]
    )
    assert isinstance(large, memoryview)
    assert large.readonly
    assert isinstance(small, bytes)


def test_small_frames_reuse_one_buffer_and_large_ones_keep_theirs():
    buffer = FrameBuffer(size=1024)
    first = buffer.space().obj
    for n in range(1000):
        feed(buffer, packet(CONTROL, body(n, 16)).buffers[0])
    assert buffer.space().obj is first
    kept = feed(buffer, packet(CONTROL, body(1, 512)).buffers[0] * 4)
    assert buffer.space().obj is not first
    feed(buffer, packet(CONTROL, body(9, 512)).buffers[0] * 4)
    assert [bytes(each) for _, each in kept] == [body(1, 512)] * 4


def test_after_a_frame_larger_than_the_buffer_the_buffer_has_its_old_size():
    buffer = FrameBuffer(size=1024)
    feed(buffer, packet(CONTROL, body(1, 100_000)).buffers[0])
    assert len(buffer.space()) == 1024


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (HEAD.pack(MAGIC + 1, VERSION, CONTROL, 8), "begins with"),
        (HEAD.pack(MAGIC, VERSION + 1, CONTROL, 8), "version"),
        (HEAD.pack(MAGIC, VERSION, 0, 8), "kind 0"),
        (HEAD.pack(MAGIC, VERSION, 99, 8), "kind 99"),
        (HEAD.pack(MAGIC, VERSION, CONTROL, 2048), "more than the 1024"),
        (HEAD.pack(MAGIC, VERSION, CONTROL, 7), "multiple of 8"),
    ],
)
def test_a_head_that_is_not_ours_is_refused_before_anything_is_allocated(head, words):
    buffer = FrameBuffer(size=256, body_bytes_max=1024)
    with pytest.raises(WireError, match=words):
        feed(buffer, head)


@given(st.binary(min_size=8, max_size=200))
def test_garbage_raises_wire_errors_and_nothing_else(data):
    with suppress(WireError):
        feed(FrameBuffer(size=256, body_bytes_max=1 << 16), data)
