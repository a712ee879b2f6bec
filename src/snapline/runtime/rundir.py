"""A run directory: everything that one run leaves behind, in one place, under a readable name.

run.json      what was run: version, dataflow, protocol, options, seed, when it began
store/        snapshots and decisions; renamed to store.away while it is away on purpose, and while it is
              slow or fails on purpose the file store.trouble says so
logs/         the senders' message logs
output/       egress files and manifests
journal/      what happened, one file per process
result.json   verdict and figures, once the run is over
"""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snapline.errors import StoreUnavailable, UsageError
from snapline.storage.files import FileLogs, FileOutlet, FileStore, Trouble, TroubledStore

VERSION = 3
RUNS = Path("runs")

_FIRST = [
    "amber",
    "brisk",
    "calm",
    "deft",
    "early",
    "fair",
    "grand",
    "keen",
    "light",
    "merry",
    "noble",
    "quiet",
    "swift",
    "vivid",
    "warm",
]
_SECOND = [
    "brook",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "heron",
    "inlet",
    "larch",
    "meadow",
    "otter",
    "reed",
    "stone",
    "wren",
]


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """The files of one run."""

    path: Path

    @staticmethod
    def create(runs: Path, flow: str, protocol: str, spec: Mapping[str, Any]) -> "RunDirectory":
        """A new directory with a name that people can say."""
        dice = random.SystemRandom()
        for _ in range(100):
            name = f"{flow}-{protocol}-{dice.choice(_FIRST)}-{dice.choice(_SECOND)}"
            path = runs / name
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                continue
            except OSError as error:
                raise UsageError(
                    f"cannot make the run directory {path}: {error.strerror}"
                ) from error
            directory = RunDirectory(path.resolve())
            (path / "store").mkdir()
            directory.write("run.json", {"version": VERSION, **spec})
            return directory
        raise UsageError(f"no free name for a run in {runs}: remove some with 'snapline runs rm'")

    @staticmethod
    def open(runs: Path, name: str) -> "RunDirectory":
        """An existing run, by name, by path, or `last`."""
        if name == "last":
            found = [path.parent for path in runs.glob("*/run.json")]
            if not found:
                raise UsageError(f"there are no runs in {runs}")
            path = max(found, key=lambda run: (run / "run.json").stat().st_mtime)
        else:
            path = next(
                (p for p in (runs / name, Path(name)) if (p / "run.json").is_file()), Path()
            )
        directory = RunDirectory(path.resolve())
        if not (path / "run.json").is_file():
            raise UsageError(f"there is no run {name!r} in {runs}: see 'snapline runs'")
        version = directory.spec().get("version")
        if version != VERSION:
            raise UsageError(f"{path} was written by another version of Snapline ({version})")
        return directory

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.path.name

    def spec(self) -> dict[str, Any]:
        """What was run."""
        return self.read("run.json")

    def result(self) -> dict[str, Any] | None:
        """Verdict and figures; None while the run is not over."""
        return self.read("result.json") if (self.path / "result.json").is_file() else None

    def write(self, file: str, content: Mapping[str, Any]) -> None:
        """Write a JSON file, whole or not at all."""
        draft = self.path / f".{file}.draft"
        try:
            draft.write_text(json.dumps(content, indent=2))
            draft.replace(self.path / file)
        except OSError as error:
            raise StoreUnavailable(f"cannot write {self.path / file}: {error.strerror}") from error

    def read(self, file: str) -> dict[str, Any]:
        """Read a JSON file of the run."""
        try:
            content: dict[str, Any] = json.loads((self.path / file).read_text())
        except (OSError, ValueError) as error:
            raise UsageError(f"{self.path / file} cannot be read: {error}") from error
        return content

    @property
    def store(self) -> TroubledStore:
        """Snapshots and decisions."""
        return TroubledStore(FileStore(self.path / "store", must_exist=True), self.trouble)

    @property
    def trouble(self) -> Trouble:
        """What goes wrong with the store on purpose, besides being away."""
        return Trouble(self.path / "store.trouble")

    def take_store_away(self) -> None:
        """Let every call to the store fail, in every process, until it is brought back."""
        (self.path / "store").rename(self.path / "store.away")

    def bring_store_back(self) -> bool:
        """End what `take_store_away` began, also if that process is gone; False if it is not away."""
        try:
            (self.path / "store.away").rename(self.path / "store")
        except FileNotFoundError:
            return False
        return True

    def mend_store(self) -> None:
        """Let the store be as it should be, whatever was done to it on purpose, and by whom."""
        self.trouble.end()
        self.bring_store_back()

    @property
    def logs(self) -> FileLogs:
        """The senders' logs."""
        return FileLogs(self.path / "logs")

    @property
    def outlet(self) -> FileOutlet:
        """The output."""
        return FileOutlet(self.path / "output")
