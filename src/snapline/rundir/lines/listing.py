"""The kept lines of a run and their checkpoints, with sizes and ages, as people and programs are told."""

import time
from dataclasses import dataclass
from pathlib import Path

from snapline.core.messages import CheckpointMeta
from snapline.engine.coordinator.ledger import Chain
from snapline.engine.slot.checkpoints import key_of
from snapline.ids import TaskId
from snapline.rundir.directory import RunDirectory
from snapline.rundir.lines.kept import KeptLine, decision_path, kept_lines, spec_with_lines
from snapline.rundir.lines.needs import in_flight
from snapline.rundir.program import guarantee_of


@dataclass(frozen=True, slots=True)
class ListedCheckpoint:
    """The checkpoint of a task on a line. At its initial state a task has none."""

    task: TaskId
    meta: CheckpointMeta
    bases: int  # how many snapshots it builds on
    bytes: int  # of all of them, its own included
    age_s: float | None  # None: its file is gone


@dataclass(frozen=True, slots=True)
class ListedLine:
    """A line that is kept."""

    number: int
    newest: bool
    age_s: float | None
    bytes: int  # of all snapshots that it needs
    replayed: int  # messages in flight across it
    manifests: int  # published with it, or before
    checkpoints: tuple[ListedCheckpoint, ...]


def list_lines(directory: RunDirectory) -> list[ListedLine]:
    """The lines that a run keeps, oldest first. Raises UsageError, and RunDamaged if nobody can tell."""
    guarantee, now_s = guarantee_of(spec_with_lines(directory)), time.time()
    lines = kept_lines(directory)

    def listed(line: KeptLine) -> ListedLine:
        chains = line.decision.chains
        return ListedLine(
            line.number,
            line.newest,
            _age_s(decision_path(directory, line.number), now_s),
            sum(meta.bytes for meta in line.snapshots),
            sum(part.through - part.after for _, part in in_flight(line, guarantee)),
            line.decision.published,
            tuple(_checkpoint(directory, t, chain, now_s) for t, chain in chains.items() if chain),
        )

    return [listed(line) for line in lines]


def _checkpoint(
    directory: RunDirectory, task: TaskId, chain: Chain, now_s: float
) -> ListedCheckpoint:
    path = directory.storage.untroubled.path(key_of(chain[-1]))
    size = sum(meta.bytes for meta in chain)
    return ListedCheckpoint(task, chain[-1], len(chain) - 1, size, _age_s(path, now_s))


def _age_s(path: Path, now_s: float) -> float | None:
    try:
        return max(0.0, now_s - path.stat().st_mtime)
    except OSError:
        return None
