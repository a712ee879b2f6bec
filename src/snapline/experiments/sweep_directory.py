"""The directory of a sweep: one small file for each run that was made, and the runs themselves.

sweep.toml         the file that was given, as it was when the sweep was last started
cells/KEY.json     the result of one cell; the key is a digest of all that decides what it measures
capacities/        the capacities of which rates are shares, likewise
runs/              the run directories
results.parquet    all results in one table

A cell's file is written whole or not at all, so a sweep that was killed goes on with the cells that have
none. Other settings, another turn or other code give other keys: such results are never taken for these.
"""

import fcntl
import hashlib
import json
import os
import platform
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import snapline
from snapline.errors import UsageError
from snapline.experiments.machine.facts import code_facts, machine_facts, spark_facts
from snapline.storage.files.places import write_whole

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VERSION = 1
CELLS, CAPACITIES, RUNS = "cells", "capacities", "runs"
FILE, TABLE = "sweep.toml", "results.parquet"
_LOCK = ".lock"
_DEPENDENCIES = ("numpy", "numba", "pyarrow", "pyspark")
_NEEDED: Mapping[str, Mapping[str, type | tuple[type, ...]]] = {
    CELLS: {
        "turn": int,
        "again": bool,
        "varied": dict,
        "spec": dict,
        "run": str,
        "kept": str,
        "because": str,
        "metrics": dict,
        "elapsed_s": (int, float),
        "environment": dict,
    },
    CAPACITIES: {"sustained": (int, float), "environment": dict},
}
"""What every result says, by folder: one that does not was written by somebody else, or is damaged."""


class SweepDirectory:
    """Where a sweep keeps what it has measured."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs = path / RUNS

    @contextmanager
    def claimed(self, text: str) -> Iterator[None]:
        """Make the directory, and keep it for this process. Raises UsageError if another one has it."""
        try:
            for folder in (self.path, self.path / CELLS, self.path / CAPACITIES, self.runs):
                folder.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise UsageError(f"{self.path} cannot be written: {error.strerror}") from error
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(
                    f"another sweep writes to {self.path}: wait for it, or say --to DIR"
                ) from None
            write_whole(self.path / FILE, text)
            yield
        finally:
            os.close(lock)

    def read(self, key: str, folder: str = CELLS) -> dict[str, Any] | None:
        """The result of a cell; None if it has none, or none that can be read."""
        try:
            content = json.loads((self.path / folder / f"{key}.json").read_text())
        except (OSError, ValueError):
            return None
        sound = isinstance(content, dict) and content.get("version") == VERSION
        return (
            content if sound and content.get("key") == key and _is_whole(content, folder) else None
        )

    def write(self, key: str, content: Mapping[str, Any], folder: str = CELLS) -> None:
        """Keep the result of a cell."""
        said = {"version": VERSION, "key": key, **content}
        write_whole(self.path / folder / f"{key}.json", json.dumps(said, indent=1), durable=True)

    def results(self) -> list[dict[str, Any]]:
        """All results that are kept. Raises UsageError if this is no sweep."""
        if not (self.path / FILE).is_file():
            raise UsageError(f"{self.path} is no sweep: there is no {FILE} in it")
        keys = sorted(file.stem for file in (self.path / CELLS).glob("*.json"))
        return [found for key in keys if (found := self.read(key)) is not None]


def _is_whole(content: Mapping[str, Any], folder: str) -> bool:
    """Whether a result says all that readers take for granted."""
    return all(isinstance(content.get(name), kind) for name, kind in _NEEDED[folder].items())


def measuring_code(results: Sequence[Mapping[str, Any]]) -> str | None:
    """The digest of the code with which most of these results were measured; None if there are none."""
    known = Counter(str(result.get("environment", {}).get("code")) for result in results)
    return known.most_common(1)[0][0] if known else None


def is_sweep(path: Path) -> bool:
    """Whether a directory is that of a sweep."""
    return (path / FILE).is_file() and (path / CELLS).is_dir()


@cache
def code_digest() -> str:
    """A digest of the code that runs: Snapline's own, and the versions of what it builds on."""
    root = Path(snapline.__file__).parent
    digest = hashlib.sha256(platform.python_version().encode())
    for file in sorted(root.rglob("*.py")):
        digest.update(f"\n{file.relative_to(root)}\n".encode() + file.read_bytes())
    for name in _DEPENDENCIES:
        digest.update(f"\n{name} {_version(name)}".encode())
    return digest.hexdigest()[:20]


def environment(place: Path, session: "SparkSession | None" = None) -> dict[str, Any]:
    """The machine and the versions with which cells are measured; `place` is where runs are kept."""
    return {
        "snapline": _version("snapline"),
        "code": code_digest(),
        **code_facts(Path(snapline.__file__).parent),
        "python": platform.python_version(),
        **{name: _version(name) for name in _DEPENDENCIES},
        **machine_facts(place),
        "spark": None if session is None else spark_facts(session),
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
