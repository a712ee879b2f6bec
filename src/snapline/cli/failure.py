"""Makes a run that broke a promise smaller, writes it to a file, and prints the command that repeats it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snapline.cli.terminal.console import escape, escape_lines, messages, results
from snapline.errors import UsageError
from snapline.sim.case import Case
from snapline.sim.explore import shrink_case
from snapline.sim.run import Outcome, simulate
from snapline.wording import plural

SHRUNK_MAX = 3  # a bug shows in many cells; a few small examples of it are enough


@dataclass(frozen=True, slots=True)
class BrokenPromise:
    """A run that broke a promise, and a smaller run that breaks one, too."""

    found: Outcome
    shrunk: Outcome | None = None  # None: another failure of the same cell was shrunk instead
    file: Path | None = None

    @property
    def smallest(self) -> Outcome:
        """The smaller run if there is one, else the run that was found."""
        return self.shrunk or self.found

    @property
    def command(self) -> str:
        """The command that repeats the run."""
        return f"snapline simulate --repeat {self.file}" if self.file else self.found.case.command()

    def to_json(self) -> dict[str, Any]:
        """The failure as its file holds it, and as `--json` prints it."""
        violation = self.smallest.violation
        assert violation is not None
        return {
            "invariant": violation.name,
            "story": violation.story,
            "case": json.loads(self.smallest.case.to_json()),
            "found": json.loads(self.found.case.to_json()),
        }


def find_failures(outcomes: Sequence[Outcome]) -> list[BrokenPromise]:
    """All broken runs. The first of each protocol and workload is shrunk and stored, up to a limit."""
    failures: list[BrokenPromise] = []
    shrunk: set[tuple[str, str]] = set()
    for outcome in outcomes:
        if outcome.violation is None:
            continue
        cell = outcome.case.protocol, outcome.case.workload
        if cell in shrunk or len(shrunk) == SHRUNK_MAX:
            failures.append(BrokenPromise(outcome))
        else:
            failures.append(shrink(outcome))
            shrunk.add(cell)
    return failures


def shrink(found: Outcome) -> BrokenPromise:
    """Look for a smaller run that also breaks a promise, and write it to a file."""
    case = found.case
    with messages().status(f"shrinking seed {case.seed} of {case.protocol} on {case.workload}"):
        smaller = simulate(shrink_case(case))
    shrunk = found if smaller.violation is None else smaller
    file = Path(f"snapline-failure-{case.protocol}-{case.workload}-{case.seed}.json")
    try:
        file.write_text(json.dumps(BrokenPromise(found, shrunk).to_json(), indent=2) + "\n")
    except OSError as error:
        messages().print(f"cannot write {escape(file)}: {error.strerror}")
        return BrokenPromise(found, shrunk)
    return BrokenPromise(found, shrunk, file)


def read_case(file: Path) -> Case:
    """Read the case from a file that `shrink` has written."""
    try:
        return Case.from_json(json.dumps(json.loads(file.read_text())["case"]))
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{file} is not a failure that `snapline simulate` wrote") from error


def print_failure(failure: BrokenPromise) -> None:
    """Print which promise broke, how, and how to see it again."""
    out = results()
    case, violation = failure.smallest.case, failure.smallest.violation
    assert violation is not None
    run = f"{case.protocol} on {case.workload}, seed {case.seed}"
    out.print(f"\n[bold red]broken[/] [bold]{escape(violation.name)}[/]: {run}")
    if failure.shrunk is not None:
        faults = "drawn from the seed" if case.faults is None else case.faults or "none"
        out.print(escape_lines(violation.story))
        out.print(
            f"smallest run found: {plural(case.slots, 'slot')}, {plural(case.records, 'record')}, "
            f"faults: {escape(faults)}"
        )
    out.print(f"repeat with: [cyan]{escape(failure.command)}[/]\n", soft_wrap=True)
