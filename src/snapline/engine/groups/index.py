"""The index: which groups belong to a checkpoint, and where each of them is stored.

It is a part of the snapshot. In a full snapshot it has all groups; in a delta it has those that are new, or
have a new version, and names those that are gone. So it costs what has changed, as all else in a delta.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from snapline.batch import Batch, Words
from snapline.engine.groups.content import SNAPSHOTS
from snapline.ids import CheckpointNo
from snapline.storage.codec import StoredSnapshot

INDEX: Final = "@groups"
"""The engine's own part of a snapshot with the index of its groups."""


@dataclass(slots=True)
class StoredGroup:
    """One group in one version: an object that never changes."""

    part: str  # of the task's state
    number: int  # in its part
    life: str  # the name of the life that wrote it ...
    checkpoint: CheckpointNo  # ... for this checkpoint, which is its version
    rows: int
    bytes: int = 0  # known once it is stored, as the digest is
    digest: str = ""

    @property
    def key(self) -> str:
        """The name of the object: nobody else ever writes it."""
        part = self.part.replace("/", ":")
        return f"{SNAPSHOTS}/{self.life}/{self.checkpoint}.{part}.{self.number}"


Held: TypeAlias = dict[tuple[str, int], StoredGroup]
"""Groups by part and number."""


def write_index(groups: Sequence[StoredGroup], gone: Sequence[StoredGroup] = ()) -> Batch:
    """The index as it is stored: of all groups, or of those that are new and those that are gone."""
    every = [*groups, *gone]
    digests = b"".join(bytes.fromhex(each.digest or "0" * 32) for each in every)
    halves = np.frombuffer(digests, "<u8").astype(np.uint64).reshape(-1, 2)
    return Batch(
        {
            "part": _words([each.part for each in every]),
            "number": _ints([each.number for each in every]),
            "life": _words([each.life for each in every]),
            "checkpoint": _ints([each.checkpoint for each in every]),
            "rows": _ints([each.rows for each in every]),
            "bytes": _ints([each.bytes for each in every]),
            "digest": halves[:, 0].copy(),
            "digest-end": halves[:, 1].copy(),
            "gone": np.arange(len(every)) >= len(groups),
        },
        len(every),
    )


def _ints(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, np.int64)


def _words(values: list[str]) -> Words:
    codes = {value: code for code, value in enumerate(dict.fromkeys(values))}
    return Words(np.array([codes[value] for value in values], np.int32), tuple(codes))


def groups_of_chain(chain: Iterable[StoredSnapshot], before: Held | None = None) -> Held:
    """The groups to which the last snapshot of a chain refers, in the order of their numbers.

    `before` has those of the snapshot on which the chain builds, if it does not begin with a full one.
    """
    held: Held = dict(before or {})
    for snapshot in chain:
        if snapshot.full:
            held = {}
        for group, gone in _entries(snapshot.parts):
            if gone:
                held.pop((group.part, group.number), None)
            else:
                held[group.part, group.number] = group
    return dict(sorted(held.items()))


def _entries(parts: Mapping[str, Batch]) -> Iterable[tuple[StoredGroup, bool]]:
    index = parts.get(INDEX)
    if index is None:
        return
    halves = np.stack([index["digest"], index["digest-end"]], axis=1).astype("<u8")
    columns = ("part", "number", "life", "checkpoint", "rows", "bytes", "gone")
    rows = zip(*(index.select(name).rows() for name in columns), strict=True)
    for row, digest in zip(rows, halves, strict=True):
        part, number, life, checkpoint, count, size, gone = (value for (value,) in row)
        yield (
            StoredGroup(part, number, life, checkpoint, count, size, digest.tobytes().hex()),
            bool(gone),
        )
