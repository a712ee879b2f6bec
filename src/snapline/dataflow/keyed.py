"""Keyed streams: the operators that keep state per key."""

from snapline.dataflow.stream import Stream


class KeyedStream(Stream):
    """Records routed by key to the next operator."""
