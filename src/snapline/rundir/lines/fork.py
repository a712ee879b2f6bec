"""A fork: a new run that begins at a kept line of another run, which is not changed.

The directory of the new run is complete by itself. All files that the line needs are copied into it, under
the same names: snapshots, message logs, the output that was public at the line, and staged input. They are
not linked, because faults damage files of a run in place. THEN its first decision is written, which says
what the line's last decision said; THEN `run.json`, without which a directory is no run. So a fork that is
killed while it is made leaves no run behind.

To the new run all this looks like a resume. It counts epochs and lives of slots from those of the run that
it came from, so that no file of its own has the name of one that was copied, and what its logs and its
output hold beyond the line is void, as after a rollback.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from snapline.engine.coordinator.anchor import FIRST
from snapline.engine.coordinator.ledger import (
    Decision,
    check_fingerprint,
    decision_key,
    encode,
)
from snapline.errors import ObjectDamaged, ObjectMissing, RunDamaged, UsageError
from snapline.rundir.directory import RunDirectory
from snapline.rundir.lines.kept import KeptLine, line_called, read_ledger, spec_with_lines
from snapline.rundir.lines.needs import Need
from snapline.rundir.lines.verify import check_line
from snapline.rundir.past import damaged
from snapline.rundir.presence import refuse_if_driven
from snapline.rundir.stored_input import staged_place
from snapline.storage.files.frames import unavailable_on_os_error
from snapline.storage.files.log_index import index_of
from snapline.storage.files.places import copy_file, make_directory, sync_directory
from snapline.storage.streams.chain import StreamChain, is_stream


@dataclass(frozen=True, slots=True)
class Fork:
    """A fork that can be made: the line is kept, and all that it needs was read and is whole."""

    origin: RunDirectory
    line: KeptLine
    last: Decision  # of the origin: its epoch and lives are used up
    files: tuple[Path, ...]  # of the origin, to be copied

    @property
    def said(self) -> dict[str, Any]:
        """Where the fork came from, for its `run.json`."""
        return {
            "run": self.origin.name,
            "line": self.line.number,
            "id": self.origin.identity,
        }


def plan_fork(origin: RunDirectory, number: int | None, fingerprint: str) -> Fork:
    """Read all that a line needs. Raises UsageError if a run cannot be forked there; changes nothing."""
    refuse_if_driven(origin)
    spec = spec_with_lines(origin)
    try:
        ledger = read_ledger(origin, spec)
    except (ObjectMissing, ObjectDamaged) as error:
        raise damaged(origin, error) from error
    lines = ledger.lines if ledger is not None else ()
    if number is None:
        kept = ", ".join(str(line.number) for line in lines) or "no line"
        raise UsageError(f"say at which line the fork begins: {origin.name} keeps {kept}")
    line = line_called(origin, lines, number)
    assert ledger is not None
    needs, problem = check_line(origin, spec, line)
    if problem:
        raise RunDamaged(
            f"line {number} of {origin.name} is damaged ({problem}): 'snapline checkpoints {origin.name} "
            "--verify' says which lines are whole"
        )
    _refuse_streams(origin)
    # Only now, because of damaged input it would say no more than that it is another input.
    check_fingerprint(line.decision, fingerprint)
    return Fork(origin, line, ledger.last, tuple(_files(needs)))


def _refuse_streams(origin: RunDirectory) -> None:
    """Raise UsageError if a stream of a run is not at its end: its query goes on in one run alone."""
    for source in origin.staged:
        place = staged_place(origin, source)
        if is_stream(place) and not StreamChain(place).sealed:
            raise UsageError(
                f"the stream of the source '{source}' of {origin.name} is not at its end, and cannot go on "
                f"in two runs: resume {origin.name} until it is over, and fork it then"
            )


def _files(needs: Iterable[Need]) -> dict[Path, None]:
    """Every file once. The index of a segment is no need, but a help."""
    found: dict[Path, None] = {}
    for need in needs:
        found[need.path] = None
        if need.path.suffix == ".log" and index_of(need.path).is_file():
            found[index_of(need.path)] = None
    return found


def fill_fork(fork: Fork, directory: RunDirectory, identity: str) -> None:
    """Copy all that the line needs into the directory of a new run, and write its first decision."""
    refuse_if_driven(fork.origin)
    folders: dict[Path, None] = {}
    for path in fork.files:
        target = directory.path / path.relative_to(fork.origin.path)
        with unavailable_on_os_error(f"copy {path} to {target}"):
            make_directory(target.parent, inside=directory.path)
            copy_file(path, target)
        folders[target.parent] = None
    with unavailable_on_os_error(f"sync {directory.path}"):
        for folder in folders:
            sync_directory(folder)
    first = encode(_first_decision(fork, identity))
    directory.files.put_if_absent(decision_key(1), first)


def _first_decision(fork: Fork, identity: str) -> Decision:
    """The line as the new run finds it, with epoch and lives of the origin, which must not come again."""
    return replace(
        fork.line.decision,
        number=1,
        author=uuid4().hex,
        epoch=fork.last.epoch,
        incarnations=fork.last.incarnations,
        run=identity,
        before="",
        over="",
        anchor=FIRST,
        lines=(),
        digest="",
    )
