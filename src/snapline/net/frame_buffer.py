"""The buffer of a connection: bytes are received into it, and whole frames are cut out of it.

A large body is a view of the buffer into which it was received; the buffer then belongs to whoever holds
the view, and the connection goes on in a new one. A small body is copied: otherwise a message of one
record that waits in an inbox would keep a whole buffer alive, and a flood of such messages would cost one
buffer after another.
"""

from typing import Final

import numpy as np

from snapline.net.framing import BODY_BYTES_MAX, HEAD, Body, read_head

BUFFER_BYTES: Final = 1 << 18


class FrameBuffer:
    """Takes the bytes that a connection receives, and gives out the frames in them."""

    def __init__(self, size: int = BUFFER_BYTES, body_bytes_max: int = BODY_BYTES_MAX) -> None:
        self._size = size
        self._copy_below = size // 32
        self._body_bytes_max = body_bytes_max
        self._start = 0  #: where the first byte stands that is not yet part of a frame given out
        self._end = 0  #: behind the last byte received
        self._wanted = HEAD.size  #: the size of the frame at `_start`, as far as it is known
        self._replace(size)

    def _replace(self, capacity: int) -> None:
        self._writable = np.empty(capacity, np.uint8).data  # not zeroed, unlike a bytearray
        self._readable = self._writable.toreadonly()
        self._shared = False  #: a view of this buffer was given out: do not reuse it

    def space(self) -> memoryview:
        """The part to receive into; never empty, and large enough for the rest of a half-received frame."""
        capacity = len(self._writable)
        between = self._start == self._end  # no frame is half received: nothing to copy
        if self._start + self._wanted > capacity or (between and self._end * 4 > capacity * 3):
            self._make_room()
        return self._writable[self._end :]

    def _make_room(self) -> None:
        """Move a half-received frame to the front of this buffer, or of a new one if this one is shared."""
        begun = self._readable[self._start : self._end]
        capacity = max(self._size, self._wanted)
        if self._shared or capacity != len(self._writable):
            self._replace(capacity)
        self._writable[: len(begun)] = begun
        self._start, self._end = 0, len(begun)

    def filled(self, count: int) -> None:
        """Take note that so many bytes were received into the space."""
        self._end += count

    def next(self) -> tuple[int, Body] | None:
        """The kind and the body of the next frame, if it is here. Raises WireError for garbage."""
        start, there = self._start, self._end - self._start
        if there < HEAD.size:
            self._wanted = HEAD.size
            return None
        kind, size = read_head(self._readable, start, self._body_bytes_max)
        self._wanted = HEAD.size + size
        if there < self._wanted:
            return None
        body = self._readable[start + HEAD.size : start + self._wanted]
        self._start = start + self._wanted
        if size < self._copy_below:
            return kind, bytes(body)
        self._shared = True
        return kind, body

    @property
    def midway(self) -> bool:
        """Whether a frame is half received."""
        return self._start != self._end
