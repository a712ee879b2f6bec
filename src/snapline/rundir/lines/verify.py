"""Reads all that the kept lines of a run need, and names each file that is gone or damaged.

What is found: any change to a decision, a snapshot, a manifest, or a staged input, because each has a
digest; any change to a message log or an output file before the last place that a mark, the index or a
manifest vouches for; and any of these files that is gone. What stands behind the last such place is a torn
tail, as every kill leaves one, and no line needs it. A damaged decision hides which lines there are: then
only it is named.

Nothing is changed, and no code that the run names is executed. Input that `generate` has stored is no part
of a run directory; DataFrames that the run has staged are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from snapline.engine.coordinator.evidence import Evidence
from snapline.engine.coordinator.ledger import read_decision
from snapline.errors import ObjectDamaged, ObjectMissing, StorageError
from snapline.rundir.directory import RunDirectory
from snapline.rundir.lines.kept import KeptLine, Ledger, decision_path, read_ledger, spec_with_lines
from snapline.rundir.lines.needs import Need, needs_of
from snapline.rundir.past import evidence_of, public_rows
from snapline.rundir.program import guarantee_of
from snapline.rundir.spec import Spec

Tell = Callable[[int, int], None]
"""Is told after each file how many bytes were read, and how many there are in all."""


@dataclass(frozen=True, slots=True)
class DamagedFile:
    """A file that is not what a kept line needs."""

    file: str  # relative to the run directory
    problem: str
    needed_for: str


@dataclass(frozen=True, slots=True)
class Verified:
    """What was read, and what is wrong with it."""

    lines: tuple[int, ...]
    files: tuple[str, ...]  # that the lines need, relative to the run directory
    bytes: int
    damages: tuple[DamagedFile, ...]


@dataclass(slots=True)
class _Needed:
    """A file that one line needs, or several, for one thing."""

    need: Need
    lines: list[int]

    @property
    def purpose(self) -> str:
        plural = "s" if len(self.lines) > 1 else ""
        return f"{self.need.what} (line{plural} {', '.join(map(str, self.lines))})"


def verify(directory: RunDirectory, tell: Tell = lambda done, total: None) -> Verified:
    """Read all that the kept lines of a run need. Raises UsageError for a run that has no lines."""
    spec = spec_with_lines(directory)
    evidence = _evidence(directory)
    try:
        ledger = read_ledger(directory, spec)
        if objection := evidence.objection(ledger.last if ledger is not None else None):
            raise ObjectMissing(objection)
    except (ObjectMissing, ObjectDamaged) as error:
        lost = DamagedFile(_lost_decision(directory), str(error), "to know which lines are kept")
        return Verified((), (), 0, (lost,))
    if ledger is None:
        return Verified((), (), 0, ())
    return _verify_lines(directory, spec, ledger, tell)


def _verify_lines(directory: RunDirectory, spec: Spec, ledger: Ledger, tell: Tell) -> Verified:
    needed = _needed(directory, spec, ledger.lines)
    decisions = [decision_path(directory, number) for number in ledger.decisions]
    sizes = {path: _size(path) for path in (*decisions, *(each.need.path for each in needed))}
    total, done = sum(sizes.values()), sum(sizes[path] for path in decisions)
    damages, read = [], set(decisions)
    for each in needed:
        path = each.need.path
        if problem := _problem(each.need):
            damages.append(DamagedFile(_relative(directory, path), problem, each.purpose))
        done += 0 if path in read else sizes[path]
        read.add(path)
        tell(done, total)
    if not damages and (problem := _replaced(directory, ledger)):
        public = "the published output of the newest line"
        damages.append(DamagedFile("output/manifests", problem, public))
    files = tuple(_relative(directory, path) for path in sizes)
    return Verified(tuple(line.number for line in ledger.lines), files, total, tuple(damages))


def check_line(directory: RunDirectory, spec: Spec, line: KeptLine) -> tuple[list[Need], str]:
    """What one line needs, and what is wrong with it, with the name of the file; empty if nothing is."""
    needs = needs_of(directory, line, guarantee_of(spec))
    problems = ((need, _problem(need)) for need in needs)
    wrong = next(((need, problem) for need, problem in problems if problem), None)
    return needs, f"{wrong[0].path}: {wrong[1]}" if wrong is not None else ""


def _needed(directory: RunDirectory, spec: Spec, lines: Sequence[KeptLine]) -> list[_Needed]:
    """What the lines need, each thing once: as the newest line needs it, which needs most of a file."""
    found: dict[tuple[Path, str], _Needed] = {}
    for line in reversed(lines):
        for need in needs_of(directory, line, guarantee_of(spec)):
            found.setdefault((need.path, need.what), _Needed(need, [])).lines.insert(0, line.number)
    return list(found.values())


def _problem(need: Need) -> str:
    try:
        need.check()
    except StorageError as error:
        return str(error)
    return ""


def _evidence(directory: RunDirectory) -> Evidence:
    """What the rest of the run proves about its ledger, unless that is damaged itself."""
    try:
        return evidence_of(directory)
    except (ObjectMissing, ObjectDamaged):
        return Evidence()


def _replaced(directory: RunDirectory, ledger: Ledger) -> str:
    """Why what is public is not what was decided, although every file is whole; empty if it is."""
    last = ledger.last
    try:
        decided = {manifest.number: manifest.extents for manifest in last.manifests}
        directory.outlet.check(decided, last.published, public_rows(last))
    except StorageError as error:
        return str(error)
    return ""


def _lost_decision(directory: RunDirectory) -> str:
    """The file of the newest decision that cannot be read, or of the one behind the last."""
    folder = decision_path(directory, 1).parent
    there = [int(path.stem) for path in folder.glob("*.obj") if path.stem.isdecimal()]
    for number in range(max(there, default=0), 0, -1):
        try:
            read_decision(directory.files, number, directory.identity)
        except StorageError:
            return _relative(directory, decision_path(directory, number))
    return _relative(directory, decision_path(directory, max(there, default=0) + 1))


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _relative(directory: RunDirectory, path: Path) -> str:
    return str(path.relative_to(directory.path))
