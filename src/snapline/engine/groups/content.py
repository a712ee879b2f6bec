"""What is stored of a snapshot or of a group, made when it is asked for, and where it is stored."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from snapline.batch import Batch
from snapline.core.messages import Message
from snapline.dataflow.operators.operator import Capture
from snapline.storage.codec import Pieces, encode_snapshot

SNAPSHOTS: Final = "snapshot"
"""The folder of the store in which every life has a folder for its snapshots, and for its groups."""


class Content:
    """The stored form of a snapshot, made when it is first asked for, in any thread, one at a time."""

    def __init__(
        self,
        capture: Capture,
        memo: bytes,
        messages: Sequence[Message],
        *,
        compress: bool = False,
        more: Callable[[], Mapping[str, Batch]] | None = None,
    ) -> None:
        """`more` makes further parts, of what is not known before it is asked for."""
        self._captured = (capture, memo, messages)
        self._compress = compress
        self._more = more
        self._made: Pieces | None = None
        self.bytes = 0
        self.digest = ""

    def __call__(self) -> Pieces:
        """Return the stored form, made if need be; from now on its size and digest are known."""
        if self._made is None:
            capture, memo, messages = self._captured
            parts = {**capture.parts, **(self._more() if self._more is not None else {})}
            made = encode_snapshot(capture.full, parts, memo, messages, compress=self._compress)
            self.bytes, self.digest = made.size, made.digest
            self._made = made
        return self._made
