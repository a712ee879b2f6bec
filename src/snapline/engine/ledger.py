"""The coordinator's durable memory: a ledger of numbered decisions.

A decision is written under its number unless that number is taken, so of two coordinators that both think
they are the one, exactly one goes on. Each says in which epoch the job is, which line is committed and
what is published by it. Only what changed since the decision before is written, and everything once in a
while, so that a resume reads a bounded number of them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from snapline.core.messages import CheckpointMeta, RecoveryLine
from snapline.errors import ObjectMissing, UsageError
from snapline.ids import Epoch, Incarnation, SlotId, TaskId
from snapline.storage.api import Extent, Store
from snapline.storage.codec import meta_from_dict, meta_to_dict

WHOLE_EVERY = 64
"""So many decisions apart everything is written again."""

Chain = tuple[CheckpointMeta, ...]
"""A checkpoint behind those of which it is a delta, oldest first. Empty: the initial state."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Output to publish: one extent per sink task that has any."""

    number: int
    extents: Mapping[TaskId, Extent]


@dataclass(frozen=True, slots=True)
class Held:
    """Output of a line that is not public yet."""

    line: RecoveryLine
    extents: Mapping[TaskId, Extent]


@dataclass(frozen=True, slots=True)
class Decision:
    """One entry of the ledger."""

    number: int
    author: str  # tells a write that came through unnoticed from one of another coordinator
    fingerprint: str
    epoch: Epoch
    incarnations: Mapping[SlotId, Incarnation]
    whole: bool
    chains: Mapping[TaskId, Chain]  # of the line; what is absent is as in the decision before
    memo: bytes
    manifests: tuple[Manifest, ...]  # to be published as soon as this decision is durable
    published: int  # the number of the last manifest, those included
    held: tuple[Held, ...] = ()  # to be published with a later line


def decision_key(number: int) -> str:
    """The name of a decision in the store."""
    return f"decision/{number:08d}"


def encode(decision: Decision) -> bytes:
    """The binary form of a decision: JSON, for it is small and people may have to read it."""
    fields: dict[str, Any] = {
        "version": 1,
        "number": decision.number,
        "author": decision.author,
        "fingerprint": decision.fingerprint,
        "epoch": decision.epoch,
        "incarnations": {str(s): i for s, i in decision.incarnations.items()},
        "whole": decision.whole,
        "chains": {t: [meta_to_dict(m) for m in chain] for t, chain in decision.chains.items()},
        "memo": decision.memo.hex(),
        "manifests": [[m.number, _extents(m.extents)] for m in decision.manifests],
        "published": decision.published,
        "held": [[dict(h.line.checkpoints), _extents(h.extents)] for h in decision.held],
    }
    return json.dumps(fields, separators=(",", ":")).encode()


def _extents(extents: Mapping[TaskId, Extent]) -> dict[str, list[Any]]:
    return {task: [e.file, e.start, e.stop] for task, e in extents.items()}


def _read_extents(extents: Mapping[str, list[Any]]) -> dict[TaskId, Extent]:
    return {TaskId(task): Extent(*extent) for task, extent in extents.items()}


def decode(data: bytes) -> Decision:
    """The decision behind a binary form."""
    fields = json.loads(data)
    return Decision(
        fields["number"],
        fields["author"],
        fields["fingerprint"],
        fields["epoch"],
        {int(s): i for s, i in fields["incarnations"].items()},
        fields["whole"],
        {TaskId(t): tuple(meta_from_dict(m) for m in c) for t, c in fields["chains"].items()},
        bytes.fromhex(fields["memo"]),
        tuple(Manifest(number, _read_extents(e)) for number, e in fields["manifests"]),
        fields["published"],
        tuple(Held(RecoveryLine(line), _read_extents(e)) for line, e in fields["held"]),
    )


def read_last(store: Store, fingerprint: str) -> Decision | None:
    """The last decision, with the chains of the whole line; None if there is none.

    Decisions are numbered without gaps, so the last one is found by probing, never by listing.
    """
    last = last_number(store)
    if last == 0:
        return None
    newest = decode(store.get(decision_key(last)))
    if newest.fingerprint != fingerprint:
        raise UsageError(
            "this run was started with another dataflow, or with another number of slots: "
            "resume it with the one that it was started with, or start a new run"
        )
    chains: dict[TaskId, Chain] = dict(newest.chains)
    entry = newest
    while not entry.whole:
        entry = decode(store.get(decision_key(entry.number - 1)))
        chains = {**entry.chains, **chains}
    return replace(newest, whole=True, chains=chains)


def last_number(store: Store) -> int:
    """The number of the last decision; 0 if there is none."""

    def exists(number: int) -> bool:
        try:
            store.get(decision_key(number))
        except ObjectMissing:
            return False
        return True

    low, high = 0, 1
    while exists(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if exists(middle) else (low, middle)
    return low
