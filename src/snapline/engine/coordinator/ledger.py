"""The coordinator's durable memory: a ledger of numbered decisions.

A decision is written under its number unless that number is taken, so of two coordinators that both think
they are the one, exactly one goes on. Each says in which epoch the job is, which line is committed and
what is published by it. Only what changed since the decision before is written, and everything once in a
while, so that a resume reads a bounded number of them. Older ones are deleted, and their numbers stay
refused (`anchor.py`). The last decision of a job that is over names the digest of its verdict (`over`),
so a verdict is fenced like everything else.

What is found out about a ledger that somebody has damaged. A decision carries a digest of itself, the
identity of its run and the digest of the decision before, so one that was cut, changed, or taken from
another run or another place is found as soon as it is read; a resume reads all that it depends on. A gap
is told from the end: behind the apparent end the next `WINDOW` numbers are probed, and then every power of
two. The loss of the last decisions cannot be seen in the ledger itself; `Evidence` holds other things
against it that came into being only after a decision was durable. What none of this finds: the last
decisions gone together with all that followed from them; a gap of `WINDOW` or more that hides all later
powers of two and of which there is no evidence; and damage to decisions on which nothing depends any more.
If a signpost is gone (`anchor.py`), the search may end at one before it, which is no end: the decision
before that was collected.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, TypeVar

from snapline.core.forms import Forms, Json
from snapline.core.messages import CheckpointMeta, RecoveryLine
from snapline.engine.coordinator.anchor import FIRST, NUMBER_BITS, Anchor, later_numbers, signposts
from snapline.errors import ObjectDamaged, ObjectMissing, StoreUnavailable, UsageError
from snapline.ids import Epoch, Incarnation, SlotId, TaskId
from snapline.storage.api import Extent, Store
from snapline.storage.codec import digest_of

WINDOW = 64
"""How many numbers behind the apparent end are probed: a shorter gap is never taken for the end."""

_NUMBER_MAX = 1 << NUMBER_BITS
_TRIES = 8
_VERSION = 3

_T = TypeVar("_T")

Chain = tuple[CheckpointMeta, ...]
"""A checkpoint after those of which it is a delta, oldest first. Empty: the initial state."""

_CHAINS = Forms().of(Mapping[TaskId, Chain])


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
    run: str = ""  # whose ledger this is
    before: str = ""  # the digest of the decision before; empty: this is the first
    over: str = ""  # the digest of the verdict, if the job is over
    anchor: Anchor = FIRST  # from which decision on all are kept
    lines: tuple[RecoveryLine, ...] = ()  # those that are kept, oldest first; only in a whole one
    digest: str = field(default="", compare=False)  # of the bytes from which this was read


def decision_key(number: int) -> str:
    """The name of a decision in the store."""
    return f"decision/{number:08d}"


def decision_number(key: str) -> int | None:
    """The number of the decision of this name; None if it is the name of something else."""
    folder, _, number = key.partition("/")
    return int(number) if folder == "decision" else None


def encode(decision: Decision) -> bytes:
    """The binary form of a decision: JSON, for it is small and people may have to read it.

    Its last field is the digest of all that stands before it.
    """
    fields: dict[str, Any] = {
        "version": _VERSION,
        "number": decision.number,
        "run": decision.run,
        "before": decision.before,
        "author": decision.author,
        "fingerprint": decision.fingerprint,
        "epoch": decision.epoch,
        "incarnations": {str(s): i for s, i in decision.incarnations.items()},
        "whole": decision.whole,
        "chains": _CHAINS.write(decision.chains),
        "memo": decision.memo.hex(),
        "manifests": [[m.number, _extents(m.extents)] for m in decision.manifests],
        "published": decision.published,
        "held": [[dict(h.line.checkpoints), _extents(h.extents)] for h in decision.held],
        "over": decision.over,
        "anchor": [decision.anchor.number, decision.anchor.digest, decision.anchor.cleared],
        "lines": [dict(line.checkpoints) for line in decision.lines],
    }
    said = json.dumps(fields, separators=(",", ":")).encode()
    return said[:-1] + _seal(said)


def _seal(said: bytes) -> bytes:
    return f',"digest":"{digest_of(said)}"}}'.encode()


_SEAL_BYTES = len(_seal(b""))


def _read_chains(written: Json) -> Mapping[TaskId, Chain]:
    try:
        chains: Mapping[TaskId, Chain] = _CHAINS.read(written)
    except ValueError as error:
        raise ObjectDamaged(f"it names checkpoints that cannot be: {error}") from error
    return chains


def _extents(extents: Mapping[TaskId, Extent]) -> dict[str, list[Any]]:
    return {task: [e.file, e.start, e.stop] for task, e in extents.items()}


def _read_extents(extents: Mapping[str, list[Any]]) -> dict[TaskId, Extent]:
    return {TaskId(task): Extent(*extent) for task, extent in extents.items()}


def decode(data: bytes) -> Decision:
    """The decision behind a binary form; ObjectDamaged if these are not the bytes that were written."""
    said = data[:-_SEAL_BYTES] + b"}"
    if data[-_SEAL_BYTES:] != _seal(said):
        raise ObjectDamaged("it is not what was decided: its digest is another one")
    fields = json.loads(said)
    if fields["version"] != _VERSION:
        raise UsageError("it was written by another version of Snapline")
    return Decision(
        fields["number"],
        fields["author"],
        fields["fingerprint"],
        fields["epoch"],
        {int(s): i for s, i in fields["incarnations"].items()},
        fields["whole"],
        _read_chains(fields["chains"]),
        bytes.fromhex(fields["memo"]),
        tuple(Manifest(number, _read_extents(e)) for number, e in fields["manifests"]),
        fields["published"],
        tuple(Held(RecoveryLine(line), _read_extents(e)) for line, e in fields["held"]),
        fields["run"],
        fields["before"],
        fields["over"],
        Anchor(*fields["anchor"]),
        tuple(RecoveryLine(line) for line in fields["lines"]),
        digest_of(data),
    )


def read_decision(store: Store, number: int, run: str) -> Decision:
    """One decision of a run. Raises ObjectMissing or ObjectDamaged."""
    key = decision_key(number)
    try:
        found = decode(store.get(key))
    except ObjectDamaged as error:
        raise ObjectDamaged(f"decision {number} ({key}) is damaged: {error}") from error
    except ObjectMissing as error:
        raise ObjectMissing(f"decision {number} ({key}) is gone") from error
    if found.run != run:
        raise ObjectDamaged(f"decision {number} ({key}) is that of another run")
    if found.number != number:
        raise ObjectDamaged(f"decision {number} ({key}) holds decision {found.number} instead")
    return found


def newest_decision(store: Store, run: str) -> Decision | None:
    """The last decision as it was written, which may name only what changed; None if there is none."""
    return from_the_end(store, lambda last: read_decision(store, last, run))


def from_the_end(store: Store, read: Callable[[int], _T]) -> _T | None:
    """What `read` makes of the last decision's number and of those before; None if there is none.

    A driver that decides meanwhile may collect what is being read: then it is read again, from the new end.
    """
    last = last_number(store)
    while last:
        try:
            return read(last)
        except ObjectMissing:
            before, last = last, last_number(store)
            if before == last:
                raise
    return None


def read_last(store: Store, fingerprint: str, run: str = "") -> Decision | None:
    """The last decision, with the chains of the whole line; None if there is none.

    Raises UsageError if it was made for another dataflow, input or number of slots.
    """
    newest = read_line(store, run)
    if newest is not None:
        check_fingerprint(newest, fingerprint)
    return newest


def check_fingerprint(decision: Decision, fingerprint: str) -> None:
    """Raise UsageError if a decision was made for another dataflow, input or number of slots."""
    if decision.fingerprint != fingerprint:
        graph, then = fingerprint.partition("-")[0], decision.fingerprint.partition("-")[0]
        other = (
            "another input"
            if graph == then
            else "another dataflow, or with another number of slots"
        )
        raise UsageError(
            f"this run was started with {other}: resume it with what it was started with, or start "
            "a new run"
        )


def read_line(store: Store, run: str = "") -> Decision | None:
    """The last decision of a run with the chains of the whole line, whatever it was made for."""
    return from_the_end(store, lambda last: _read_line(store, read_decision(store, last, run)))


def _read_line(store: Store, newest: Decision) -> Decision:
    chains: dict[TaskId, Chain] = dict(newest.chains)
    entry = newest
    while not entry.whole:
        entry = decision_before(store, entry)
        chains = {**entry.chains, **chains}
    if entry.number > newest.anchor.number:
        decision_before(
            store, entry
        )  # it depends on nothing of that one, but it must be its successor
    else:
        check_anchor(entry, newest.anchor)
    return replace(newest, whole=True, chains=chains)


def decision_before(store: Store, entry: Decision) -> Decision:
    """The decision after which another one was made. Raises ObjectMissing or ObjectDamaged."""
    found = read_decision(store, entry.number - 1, entry.run)
    if found.digest != entry.before:
        raise ObjectDamaged(
            f"decision {found.number} ({decision_key(found.number)}) is not the one after which "
            f"decision {entry.number} was made: one of the two was replaced"
        )
    return found


def check_anchor(entry: Decision, anchor: Anchor) -> None:
    """Raise ObjectDamaged if the lowest decision that is kept is not the one that a later one names."""
    if anchor.digest and entry.digest != anchor.digest:
        raise ObjectDamaged(
            f"decision {entry.number} ({decision_key(entry.number)}) is not the one from which on the "
            "ledger is kept: it was replaced"
        )


def closing(past: Decision, over: str) -> Decision:
    """The decision after the last one (with its whole line) that says that the job is over."""
    return replace(
        past,
        number=past.number + 1,
        whole=False,
        chains={},
        before=past.digest,
        over=over,
        digest="",
    )


def win(store: Store, number: int, data: bytes) -> bytes:
    """Write a decision unless its number is taken; return what counts under that number.

    That is `data` if the decision is the caller's, now or since an earlier attempt; and nothing if the
    number was used long ago, and collected. So whoever gets something else back is deposed.
    """
    key = decision_key(number)
    found = data if store.put_if_absent(key, data) else store.get(key)
    # AFTER the number is won: whether it was free because nobody had it, or because it was collected.
    return b"" if is_superseded(store, number) else found


def is_superseded(store: Store, number: int) -> bool:
    """Whether a decision later than this number was made, even if many after it were collected."""
    most = 1 << number.bit_length()
    asked = takewhile(lambda later: later <= most, later_numbers(number))
    return any(_exists_surely(store, later) for later in asked)


def _exists_surely(store: Store, number: int) -> bool:
    """As `_exists`, for one question of many: where each may fail, they would hardly ever all succeed."""
    for _ in range(_TRIES - 1):
        with suppress(StoreUnavailable):
            return _exists(store, number)
    return _exists(store, number)


def last_number(store: Store) -> int:
    """The number of the last decision; 0 if there is none.

    The last one is found by probing, never by listing: of those that were collected the signposts are left
    (`anchor.py`). Raises ObjectMissing if one is gone in the middle. One that is written or collected
    meanwhile must not look like a gap: when a later one is found, the end is looked for again.
    """
    last = _apparent_end(store)
    while (later := next((n for n in _beyond(last) if _exists(store, n)), None)) is not None:
        before, last = last, _apparent_end(store)
        if before == last:
            gone = _gap(store, last, later)
            raise ObjectMissing(
                f"decision {gone} ({decision_key(gone)}) is gone: decision {later} is there, and was made "
                "after it"
            )
    if last > 1 and not _exists(store, last - 1) and last == _apparent_end(store):
        raise ObjectMissing(
            f"decision {last - 1} ({decision_key(last - 1)}) is gone; or it was collected, and one behind "
            f"decision {last} is gone"
        )
    return last


def _gap(store: Store, last: int, later: int) -> int:
    """The decision that is gone, where one behind the apparent end is there, and the next is not.

    If the next one was collected, as the true end says, then it is a signpost that is gone.
    """
    end: int | None = later
    while end is not None:
        later, end = end, next((n for n in later_numbers(end) if _exists(store, n)), None)
    powers = (1 << bit for bit in range(later.bit_length()))
    lost = next((n for n in (*powers, *signposts(later)) if not _exists(store, n)), last + 1)
    try:
        collected = last + 1 < decode(store.get(decision_key(later))).anchor.number
    except (ObjectDamaged, ObjectMissing, UsageError):
        collected = False
    return lost if collected else last + 1


def _apparent_end(store: Store) -> int:
    low, high = 0, 1
    while _exists(store, high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _exists(store, middle) else (low, middle)
    return low


def _beyond(last: int) -> Iterator[int]:
    """Numbers to probe behind an apparent end: were the ledger longer, one of them would be there."""
    yield from range(last + 2, last + 2 + WINDOW)
    power = 1 << (last + 2 + WINDOW).bit_length()
    while power <= _NUMBER_MAX:
        yield power
        power *= 2


def _exists(store: Store, number: int) -> bool:
    try:
        store.get(decision_key(number))
    except ObjectMissing:
        return False
    except ObjectDamaged:
        return True  # there was a decision; whoever reads it will find out that it is damaged
    return True
