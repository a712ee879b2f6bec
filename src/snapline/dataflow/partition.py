"""How an edge routes: to the task of the same index, by key, to every task, or to all in turn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from snapline.batch import Array, Batch
from snapline.core.topology import Channel
from snapline.dataflow.state.hashing import hash_columns
from snapline.ids import ChannelId, Seq
from snapline.kernels import routing


@dataclass(frozen=True, slots=True)
class OneToOne:
    """Routes from task i to task i of the target operator."""


@dataclass(frozen=True, slots=True)
class ByKey:
    """Routes to the task that owns the key in these columns; without columns, to the first task."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Routes to every task of the target operator."""


@dataclass(frozen=True, slots=True)
class InTurn:
    """Routes each batch to one task of the target operator: whoever was sent the fewest messages.

    This is what becomes of `OneToOne` where an operator and its target are in pools of unequal size. How
    many messages were sent is part of every snapshot, so after a rollback the turns are as they were.
    """


Routing: TypeAlias = OneToOne | ByKey | Broadcast | InTurn


@dataclass(frozen=True, slots=True)
class Route:
    """Where one named output of a task leads, over one logical edge."""

    output: str
    routing: Routing
    channels: tuple[Channel, ...]  # by target index; one for OneToOne
    timed: bool  # carries watermarks: some operator downstream needs event time
    columns: frozenset[str] | None = None  # the columns that are sent; None: all


NOTHING_SENT: Mapping[ChannelId, Seq] = MappingProxyType({})


def split(
    route: Route, batch: Batch, sent: Mapping[ChannelId, Seq] = NOTHING_SENT
) -> Sequence[tuple[Channel, Batch]]:
    """The part of a batch that goes to each channel; empty parts are left out.

    `sent` is the number of the last message on each channel.
    """
    channels = route.channels
    if not batch.length:
        return ()
    if (wanted := route.columns) is not None:
        batch = Batch({n: c for n, c in batch.columns.items() if n in wanted}, batch.length)
    if len(channels) == 1:
        return ((channels[0], batch),)
    if isinstance(route.routing, InTurn):
        return ((min(channels, key=lambda channel: sent.get(channel.id, 0)), batch),)
    if not isinstance(route.routing, ByKey):
        return tuple((channel, batch) for channel in channels)
    columns = route.routing.columns
    if not columns:
        return ((channels[0], batch),)
    if batch.length == 1:
        return ((channels[_owner(batch, columns, len(channels))], batch),)
    keys, are_hashes = _keys(batch, columns)
    counted = np.empty(len(channels), np.int64)
    order = routing.split_order(keys, are_hashes, counted)
    counts = counted.tolist()
    if max(counts) == batch.length:
        return ((channels[counts.index(batch.length)], batch),)
    return _cut(channels, batch.take(order), counts)


def _owner(batch: Batch, columns: Sequence[str], tasks: int) -> int:
    """The index of the task that owns the only record."""
    keys, are_hashes = _keys(batch, columns)
    if are_hashes:
        return int(routing.targets(keys.view(np.uint64), tasks)[0])
    return routing.target_of(keys.item(), tasks)


def _keys(batch: Batch, columns: Sequence[str]) -> tuple[npt.NDArray[np.int64], bool]:
    """The keys if they are one column of numbers, else their hashes; and whether they are hashes."""
    first = batch.columns[columns[0]]
    if len(columns) == 1 and isinstance(first, np.ndarray) and first.dtype == np.int64:
        return np.ascontiguousarray(first), False
    return hash_columns([batch[name] for name in columns]).view(np.int64), True


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
    return routing.targets(hash_columns([batch[name] for name in columns]), parallelism)
