"""What a resume goes on from: the last decision, held against everything else that the run left.

Here is what may go wrong with each thing that a resume reads, and what becomes of it. *Definite*: the file
is gone or damaged, and asking again does not help: RunDamaged, with the name of the file. *Indefinite*: the
store is away or fails: it is asked again.

run.json      unreadable or changed: UsageError (`rundir`)
decisions     gone, cut, changed, of another run, no file: definite; a gap, or an end too early: definite,
              as far as anything tells (`engine/coordinator/ledger.py` says what does)
manifests     gone, changed, with other rows than were decided: definite
egress files  gone or cut before what is to be published: definite once it has lasted (`decisions`), because
              a file that another machine wrote may come into sight late
snapshots     gone or damaged: reported by the slot that needs it, and the protocol rolls back; if all lines
              behind it are public, the run stops and says so
logs          gone or damaged: the slot that needs it cannot start
journals      help to find out that decisions are gone; one that cannot be read is passed over
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from snapline.engine.coordinator.evidence import Evidence
from snapline.engine.coordinator.ledger import Decision, read_last
from snapline.engine.job import Job
from snapline.errors import ObjectDamaged, ObjectMissing, RunDamaged, StorageError
from snapline.ids import TaskId
from snapline.journal.happenings import LineDecided
from snapline.rundir.directory import RunDirectory

_DECIDED = LineDecided.__name__
_BLOCK_BYTES = 1 << 16


def read_past(directory: RunDirectory, job: Job) -> Decision | None:
    """The last decision of a run; None if nothing was ever decided.

    Raises RunDamaged if what the run left cannot be trusted, UsageError if it is the run of another
    dataflow or another input, and StoreUnavailable if the store does not answer.
    """
    try:
        # Read BEFORE the ledger: a driver that still lives may go on deciding meanwhile.
        evidence = evidence_of(directory)
        past = read_last(directory.store, job.deployment.fingerprint, directory.identity)
        if objection := evidence.objection(past):
            raise ObjectMissing(objection)
        if past is not None and not job.protocol.publishes_at_once:
            decided = {manifest.number: manifest.extents for manifest in past.manifests}
            directory.outlet.check(decided, past.published, public_rows(past))
    except (ObjectMissing, ObjectDamaged) as error:
        raise damaged(directory, error) from error
    return past


def damaged(directory: RunDirectory, error: StorageError) -> RunDamaged:
    """Make the error for a run that cannot go on because something of it is gone or damaged."""
    return RunDamaged(
        f"{directory.name} cannot go on: {error}. All of it lies in {directory.path}: put the file back "
        "from a copy and resume, or start a new run"
    )


def public_rows(past: Decision) -> dict[TaskId, int]:
    """How many rows of each sink task are public once the manifests of a decision are published."""
    rows = {}
    for task, chain in past.chains.items():
        held = [held.extents[task].start for held in past.held if task in held.extents]
        rows[task] = min(held, default=chain[-1].position if chain else 0)
    return rows


def evidence_of(directory: RunDirectory) -> Evidence:
    """What the rest of a run proves about its ledger, gathered before the ledger is read."""
    number = max(_numbers(directory), default=0)
    storage = directory.storage
    return Evidence(number, storage.last_epoch(), storage.outlet.last_published())


def _numbers(directory: RunDirectory) -> Iterator[int]:
    """The number of the last decision that each journal of a driver mentions: its highest.

    Journals are read from their ends, so a resume does not take the longer, the longer the run was.
    """
    for path in (directory.path / "journal").glob("driver-*.jsonl"):
        if path.is_file():  # a journal that is no file proves nothing
            found = (number for line in _backwards(path) if (number := _decided(line)) is not None)
            yield from islice(found, 1)


def _backwards(journal: Path) -> Iterator[bytes]:
    """The lines of a journal, the last one first."""
    with suppress(FileNotFoundError), journal.open("rb") as file:  # it may have been dropped
        end, rest = file.seek(0, os.SEEK_END), b""
        while end:
            start = max(0, end - _BLOCK_BYTES)
            file.seek(start)
            first, *lines = (file.read(end - start) + rest).split(b"\n")
            yield from reversed(lines)
            end, rest = start, first
        yield rest


def _decided(line: bytes) -> int | None:
    """The number of the decision of which a line tells; None if it tells of something else."""
    if _DECIDED.encode() not in line:
        return None
    try:
        what = json.loads(line)["what"]
        return int(what["number"]) if what["type"] == _DECIDED else None
    except (ValueError, LookupError, TypeError):
        return None  # the line was cut off, by a kill for example
