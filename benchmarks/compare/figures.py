"""What a comparison has measured, as values that are kept in a file of JSON lines and read again.

A comparison takes hours, so it can be taken in several sittings, each of which adds to the same file. A
line is a sitting (machine, commit, date, load, command), the figure of one run in a sitting, or a note.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from benchmarks.compare.neighbour import Neighbour

Part = Literal["throughput", "latency"]


@dataclass(frozen=True)
class Sitting:
    """One call of the program."""

    id: str  # when it began
    opening: str  # date, machine, load
    commit: str
    command: str
    setting: str  # versions, checkpoints


@dataclass(frozen=True)
class Figure:
    """One run, whose output was right."""

    sitting: str
    part: Part
    system: str
    query: str
    turn: int
    slots: int
    records: int
    rate: float  # records per second: as measured, or as asked for
    cpu_s: float  # of all slots, or of the one process that a system is
    cpu_seconds: float  # while so many seconds went by ...
    cpu_records: int  # ... and so many records were read
    checkpoints: int
    rss: int
    pss: int | None = None  # None: the system is one process
    beside_cpu_s: float | None = None  # of driver and Java, where they are no part of it
    warm_cpu_s: float = 0.0  # of a run at a rate: after the warm-up
    warm_seconds: float = 0.0
    pace: str = ""  # how the rate is called
    neighbour: Neighbour = "quiet"
    p50_ms: float = 0.0
    p99_ms: float = 0.0

    @property
    def turn_of(self) -> tuple[str, int]:
        """What runs are neighbours in time."""
        return self.sitting, self.turn


@dataclass
class Record:
    """All that is known; what is added goes to a file at once, if there is one."""

    to: Path | None = None
    sittings: list[Sitting] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def begin(self, sitting: Sitting) -> None:
        """A new sitting."""
        self.sittings.append(sitting)
        self._write("sitting", asdict(sitting))

    def add(self, figure: Figure) -> None:
        """One more run."""
        self.figures.append(figure)
        self._write("figure", asdict(figure))

    def note(self, text: str) -> None:
        """Something that a reader of the page must know."""
        if text not in self.notes:
            self.notes.append(text)
        self._write("note", {"text": text})

    def _write(self, kind: str, what: dict[str, Any]) -> None:
        if self.to is not None:
            self.to.parent.mkdir(parents=True, exist_ok=True)
            with self.to.open("a") as file:
                file.write(json.dumps({"kind": kind, **what}) + "\n")

    def of(self, part: Part) -> list[Figure]:
        """The figures of one part."""
        return [figure for figure in self.figures if figure.part == part]


def read(path: Path) -> Record:
    """What a file has kept, to which more will be added; nothing, if there is no such file."""
    record = Record(path)
    for line in path.read_text().splitlines() if path.exists() else ():
        said = json.loads(line)
        match said.pop("kind"):
            case "sitting":
                record.sittings.append(Sitting(**said))
            case "figure":
                record.figures.append(Figure(**said))
            case "note" if said["text"] not in record.notes:
                record.notes.append(said["text"])
    return record


def in_turns(ours: Sequence[Figure], theirs: Sequence[Figure]) -> list[float]:
    """The ratios of rates of runs of the same turn."""
    known = {figure.turn_of: figure for figure in theirs}
    pairs = [(figure, known.get(figure.turn_of)) for figure in ours]
    return [one.rate / other.rate for one, other in pairs if other is not None]
