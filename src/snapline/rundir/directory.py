"""A run directory: everything that one run leaves behind, in one place, under a readable name.

run.json      what was run: version, identity, dataflow, its sinks and where they write files, protocol,
              options, seed, when it began; of a fork, from which run and line it came
origin.obj    when input began to be due: the first driver that comes to it says it, for all
driver.json   which process runs it at present (`presence`)
store/        snapshots, decisions and verdicts; renamed to store.away.* while it is away on purpose, and
              while it is slow or fails on purpose the file store.trouble says so
logs/         the senders' message logs
output/       egress files and manifests
journal/      what happened, one file per process
input/        the rows of DataFrames, staged when the run began, one directory per source
errors/       the traceback of every life of a slot that an exception has ended
result.json   verdict and figures, once the run is over; the ledger says whether it counts (`results`)

The JSON files are written whole, durably, and with a digest of what they say, which is checked where they
are read: a file that was changed by hand, or by a failing disk, is not taken for what was written.
"""

import errno
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from snapline.errors import StoreUnavailable, UsageError
from snapline.ids import Incarnation, SlotId
from snapline.rundir.results import canonical, settled
from snapline.storage.api import Outlet, OutputReader, Store
from snapline.storage.codec import digest_of
from snapline.storage.column_types import Meanings, read_meanings
from snapline.storage.files.outlet import FileOutlet
from snapline.storage.files.places import make_directory, make_top, write_whole
from snapline.storage.files.storage import FileStorage
from snapline.storage.files.store import FileStore
from snapline.storage.files.trouble import Trouble

VERSION = 6
JSON_CHARS_MAX = 1 << 25
"""The largest JSON file that is read. Those of a run are far smaller, but any file may be put there."""
RUNS = Path("runs")
FOLDERS = "folders"
"""Where `run.json` has the directories of sinks that write Parquet files."""
MEANINGS = "meanings"
"""Where `run.json` says which columns of the sinks are dates, timestamps and decimals, if any are."""
INPUT = "input"
"""The directory of a run in which its staged DataFrames lie, each under the name of its source."""
RETAIN = "retain_ms"
"""Where `run.json` says for how long published output is kept, if not for ever."""
STAGED = "staged"
"""Where `run.json` names the sources whose rows are staged in `input/`, if there are any."""

_FIRST = (
    *("amber", "brisk", "calm", "deft", "early", "fair", "grand", "keen"),
    *("light", "merry", "noble", "quiet", "swift", "vivid", "warm"),
)
_SECOND = (
    *("brook", "cedar", "delta", "ember", "fjord", "grove", "heron"),
    *("inlet", "larch", "meadow", "otter", "reed", "stone", "wren"),
)


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """The files of one run."""

    path: Path

    @staticmethod
    def create(
        runs: Path,
        flow: str,
        protocol: str,
        spec: Mapping[str, Any],
        *,
        shared: bool = False,
        fill: Callable[["RunDirectory", str], None] | None = None,
    ) -> "RunDirectory":
        """Make a new run directory, under a name that people can say.

        It is for its owner alone, and so is all that is put into it. Where slots run as somebody else, it
        is `shared`, and the umask of each process says who may read and write what. `fill` is given the
        directory and the id of the run BEFORE the directory becomes a run; if it fails, nothing is left.
        """
        dice = random.SystemRandom()
        for _ in range(100):
            name = f"{flow}-{protocol}-{dice.choice(_FIRST)}-{dice.choice(_SECOND)}"
            path = runs / name
            try:
                make_top(path, private=not shared)
            except FileExistsError:
                continue
            except OSError as error:
                raise UsageError(
                    f"cannot make the run directory {path}: {error.strerror}"
                ) from error
            directory = RunDirectory(path.resolve())
            make_directory(path / "store")
            identity = uuid4().hex
            if fill is not None:
                with _removed_if_it_fails(path):
                    fill(directory, identity)
            directory.write("run.json", {"version": VERSION, "id": identity, **spec})
            return directory
        raise UsageError(f"no free name for a run in {runs}: remove some with 'snapline runs rm'")

    @staticmethod
    def open(runs: Path, name: str) -> "RunDirectory":
        """Open an existing run, by its name, its path, or `last`."""
        places = [last_run(runs)] if name == "last" else [runs / name, Path(name)]
        path = next((place for place in places if (place / "run.json").is_file()), None)
        if path is None:
            raise UsageError(f"there is no run {name!r} in {runs}: see 'snapline runs'")
        directory = RunDirectory(path.resolve())
        check_contained(directory.path)
        directory.check_version()
        return directory

    def check_version(self) -> None:
        """Raise UsageError if another version of Snapline has made it."""
        spec = self.spec()
        version = spec.get("version")
        if version != VERSION:
            raise UsageError(
                f"{self.path} was written by another version of Snapline: its run.json has version "
                f"{version}, and this Snapline reads {VERSION} (docs/history.md)"
            )
        if not spec.get("id"):
            raise UsageError(f"{self.path / 'run.json'} has lost the id of the run: it was changed")

    def check_usable(self) -> None:
        """Raise UsageError if it is there, and this process may not write into it."""
        if self.path.is_dir() and not os.access(self.path, os.R_OK | os.W_OK | os.X_OK):
            raise UsageError(
                f"a slot that runs as user {os.geteuid()} may not write into {self.path}: where executors "
                "run as another user than the driver, the run has to be --shared (shared=True in Python), "
                "with a umask that lets both write"
            )

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.path.name

    def spec(self) -> dict[str, Any]:
        """What was run."""
        return self.read("run.json")

    @property
    def identity(self) -> str:
        """The id of this run, which no other has and its decisions carry; empty if it has none."""
        return str(self.spec().get("id", ""))

    def result(self) -> dict[str, Any] | None:
        """Verdict and figures; None while the run is not over, or if nobody can say that it is."""
        return settled(self)[0]

    def why_not_over(self) -> str:
        """Why a run has no verdict, for a message; empty if it simply is not over."""
        return settled(self)[1]

    def agreed_origin(self, origin_s: float) -> float:
        """When input began to be due: what the first driver said, which all later ones get, too."""
        origin = FileStore(self.path)
        if origin.put_if_absent("origin", json.dumps(origin_s).encode()):
            return origin_s
        return float(json.loads(origin.get("origin")))

    def write(self, file: str, content: Mapping[str, Any]) -> None:
        """Write a JSON file, durably, whole or not at all."""
        sealed = {**content, "digest": digest_of(canonical(content))}
        try:
            write_whole(self.path / file, json.dumps(sealed, indent=2), durable=True)
        except OSError as error:
            raise StoreUnavailable(f"cannot write {self.path / file}: {error.strerror}") from error

    def digest(self, file: str) -> str:
        """A digest of a file of the run, by which a changed one is found."""
        try:
            return digest_of((self.path / file).read_bytes())
        except OSError as error:
            raise UsageError(f"{self.path / file} cannot be read: {error.strerror}") from error

    def read(self, file: str) -> dict[str, Any]:
        """Read a JSON file of the run."""
        try:
            with (self.path / file).open(encoding="utf-8") as opened:
                text = opened.read(JSON_CHARS_MAX + 1)
            if len(text) > JSON_CHARS_MAX:
                raise ValueError(f"it is larger than any that Snapline writes ({JSON_CHARS_MAX:,})")
            content = json.loads(text)
        except (OSError, ValueError, RecursionError) as error:
            raise UsageError(f"{self.path / file} cannot be read: {error}") from error
        if not isinstance(content, dict):
            raise UsageError(f"{self.path / file} cannot be read: it is no JSON object")
        if content.pop("digest", None) not in (None, digest_of(canonical(content))):
            raise UsageError(
                f"{self.path / file} is not what was written: it was changed, or is damaged. Put it back "
                "from a copy, or start a new run"
            )
        return content

    @property
    def storage(self) -> FileStorage:
        """Everything that the run keeps, behind the ports of `storage.api`."""
        return FileStorage(self.path, open_outlet=self._open_outlet)

    @property
    def folders(self) -> dict[str, Path]:
        """The directories into which sinks also write Parquet files, by the names of the sinks."""
        said = self.spec().get(FOLDERS)
        return {n: Path(str(at)) for n, at in said.items()} if isinstance(said, dict) else {}

    @property
    def meanings(self) -> dict[str, Meanings]:
        """What the numbers of columns mean that stand for something else, by the names of the sinks."""
        try:
            return read_meanings(self.spec().get(MEANINGS))
        except UsageError as error:
            raise UsageError(f"{self.path / 'run.json'}: {error}") from error

    @property
    def staged(self) -> list[str]:
        """The names of the sources whose rows lie in the run directory, once the run has begun."""
        said = self.spec().get(STAGED)
        return [str(name) for name in said] if isinstance(said, list) else []

    def _open_outlet(self, output: Path) -> Outlet:
        retain_ms = self.spec().get(RETAIN)
        outlet = FileOutlet(output, retain_ms if isinstance(retain_ms, int) else None)
        if not (folders := self.folders):
            return outlet
        from snapline.storage.parquet.sink_files import ParquetOutlet  # Arrow takes time to load

        return ParquetOutlet(outlet, folders, self.meanings)

    @property
    def store(self) -> Store:
        """Snapshots and decisions."""
        return self.storage.store

    @property
    def files(self) -> Store:
        """The same store for readers outside the run, which faults done on purpose do not reach."""
        return self.storage.untroubled

    @property
    def trouble(self) -> Trouble:
        """The faults done to the store on purpose, other than taking it away: slowness and errors."""
        return self.storage.trouble

    def take_store_away(self, by: str) -> None:
        """Let every call to the store fail, in every process, until it is brought back."""
        (self.path / "store").rename(self._away(by))

    def bring_store_back(self, by: str) -> bool:
        """End what `take_store_away` began, if it was taken away by the same driver; False if it was not.

        So a driver that was replaced, and does not know it yet, cannot end an outage of its successor.
        """
        try:
            self._away(by).rename(self.path / "store")
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
                return False
            raise StoreUnavailable(f"cannot bring {self._away(by)} back: {error}") from error
        return True

    def mend_store(self) -> None:
        """Undo all that was done to the store on purpose, whoever did it.

        A driver calls it when it takes a run over: the driver that did it is dead, or will be deposed.
        """
        self.trouble.end()
        for away in self.path.glob("store.away.*"):
            self.bring_store_back(away.name.removeprefix("store.away."))

    def _away(self, by: str) -> Path:
        return self.path / f"store.away.{by}"

    @property
    def outlet(self) -> Outlet:
        """The output, for those who write and publish it."""
        return self.storage.outlet

    @property
    def output(self) -> OutputReader:
        """The output, for those who read it."""
        return self.storage.output

    def write_error(self, slot: SlotId, incarnation: Incarnation, story: str) -> None:
        """Write down the traceback of the exception that ended a life of a slot.

        It may hold what no file can, such as half of a surrogate pair of a file's name: that is escaped.
        """
        make_directory(self.errors)
        plain = story.encode(errors="backslashreplace").decode()
        write_whole(self.errors / f"slot-{slot}.{incarnation}.txt", plain)

    @property
    def errors(self) -> Path:
        """Where the tracebacks are."""
        return self.path / "errors"


@contextmanager
def _removed_if_it_fails(path: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise


def run_directories(runs: Path) -> list[Path]:
    """The directories of all runs, the one that was written to last at the end."""
    files = [file for file in runs.glob("*/run.json") if file.is_file()]
    return [file.parent for file in sorted(files, key=lambda file: file.stat().st_mtime)]


def last_run(runs: Path) -> Path:
    """The directory of the newest run. Raises UsageError if there is none."""
    found = run_directories(runs)
    if not found:
        raise UsageError(f"there are no runs in {runs}")
    return found[-1]


def check_contained(directory: Path) -> None:
    """Raise UsageError if anything in a run directory leads out of it, or is no file at all.

    Whoever has made a run directory decides what lies in it. A link would let a reader read, and a resume
    write, somewhere else; a pipe would let a reader wait for ever.
    """
    folders = [str(directory)]
    while folders:
        with suppress(FileNotFoundError), os.scandir(folders.pop()) as entries:  # it may vanish
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif not entry.is_file(follow_symlinks=False):
                    _check_odd(Path(entry.path), directory)


def _check_odd(path: Path, directory: Path) -> None:
    if path.is_symlink():
        target = path.resolve()
        if not target.is_relative_to(directory):
            raise UsageError(
                f"{path} is a link to {target}, out of the run directory: replace it by what it leads to, "
                "if you trust it"
            )
    elif path.exists():  # if it does not exist, it was removed meanwhile
        raise UsageError(f"{path} is neither a file nor a directory")


def remove_run(runs: Path, name: str) -> str:
    """Delete a run by its name, or the `last`; returns its name. Raises UsageError.

    Only what lies in `runs` itself and is a run is deleted: nothing else is reached by a name with a slash,
    or through a link. A link that takes the place of the directory meanwhile is not followed, either.
    """
    name = last_run(runs).name if name == "last" else name
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise UsageError(f"{name!r} is no name of a run: 'snapline runs rm' takes those of {runs}")
    path = runs / name
    if path.is_symlink():
        raise UsageError(f"{path} is a link: remove it with 'rm', or the run that it leads to")
    if not (path / "run.json").is_file() or (path / "run.json").is_symlink():
        raise UsageError(f"there is no run {name!r} in {runs}: see 'snapline runs'")
    RunDirectory(path).check_version()
    place = os.open(runs, os.O_RDONLY | os.O_DIRECTORY)
    try:
        shutil.rmtree(name, dir_fd=place)
    except OSError as error:
        raise UsageError(f"cannot remove {path}: {error.strerror or error}") from error
    finally:
        os.close(place)
    return name
