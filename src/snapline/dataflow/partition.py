"""How an edge routes: to the task of the same index, by key, or to every task.

The target of a key is taken from the upper half of its hash (`state/hashing`); tables of keyed state use
the lower half, so the keys of one task spread over its table.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from snapline.batch import Array, Batch
from snapline.core.topology import Channel
from snapline.dataflow.state.hashing import hash_columns

_HALF = np.uint64(32)


@dataclass(frozen=True, slots=True)
class OneToOne:
    """Routes from task i to task i of the target operator."""


@dataclass(frozen=True, slots=True)
class ByKey:
    """Routes to the task that owns the key in these columns."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Routes to every task of the target operator."""


Routing: TypeAlias = OneToOne | ByKey | Broadcast


@dataclass(frozen=True, slots=True)
class Route:
    """Where one named output of a task leads, over one logical edge."""

    output: str
    routing: Routing
    channels: tuple[Channel, ...]  # by target index; one for OneToOne
    timed: bool  # carries watermarks: some operator downstream needs event time
    columns: frozenset[str] | None = None  # the columns that are sent; None: all


def split(route: Route, batch: Batch) -> Sequence[tuple[Channel, Batch]]:
    """The part of a batch that goes to each channel; empty parts are left out."""
    channels = route.channels
    if not batch.length:
        return ()
    if (wanted := route.columns) is not None:
        batch = Batch({n: c for n, c in batch.columns.items() if n in wanted}, batch.length)
    if len(channels) == 1:
        return ((channels[0], batch),)
    if not isinstance(route.routing, ByKey):
        return tuple((channel, batch) for channel in channels)
    targets = targets_of(batch, route.routing.columns, len(channels))
    if batch.length == 1:
        return ((channels[targets[0]], batch),)
    counts = np.bincount(targets, minlength=len(channels)).tolist()
    if max(counts) == batch.length:
        return ((channels[counts.index(batch.length)], batch),)
    if len(channels) == 2:
        return tuple((channels[i], batch.take(targets == i)) for i in (0, 1))
    return _cut(channels, batch.take(np.argsort(targets, kind="stable")), counts)


def _cut(
    channels: Sequence[Channel], ordered: Batch, counts: Sequence[int]
) -> Sequence[tuple[Channel, Batch]]:
    parts, start = [], 0
    for channel, count in zip(channels, counts, strict=True):
        if count:
            parts.append((channel, ordered.slice(start, start + count)))
            start += count
    return parts


def targets_of(batch: Batch, columns: Sequence[str], parallelism: int) -> Array:
    """The index of the task that owns each record."""
    upper = hash_columns([batch[name] for name in columns]) >> _HALF
    targets = (upper * np.uint64(parallelism)) >> _HALF
    # The caller sorts these: numpy sorts uint8 by radix, which is faster than comparing wider integers.
    return targets.astype(np.uint8 if parallelism <= 256 else np.int64)
