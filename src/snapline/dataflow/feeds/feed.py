"""Inputs whose size is decided when they are run.

A dataflow is written once and run in many sizes: with more slots, or for longer. A source that is made of
a rate and a rule has no size of its own, so the flow holds a *feed*, and a run binds it to an ingress.
"""

from typing import Protocol, runtime_checkable

from snapline.batch import Schema
from snapline.ids import Millis
from snapline.storage.api import Ingress


@runtime_checkable
class Feed(Protocol):
    """An input with a rate but no size: a run says for how long, and gets an ingress."""

    @property
    def schema(self) -> Schema:
        """The kinds of the columns. `time` (int64, milliseconds) is the record's time."""
        ...

    def bind(self, partitions: int, duration_ms: Millis) -> Ingress:
        """The records that are due within this time, in so many partitions."""
        ...


@runtime_checkable
class EndlessFeed(Feed, Protocol):
    """A feed that can also go on without an end."""

    def bind_endless(self, partitions: int) -> Ingress:
        """Records without an end, in so many partitions."""
        ...
