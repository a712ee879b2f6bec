"""Small real runs that keep some lines, made without Spark, and damage to their files."""

import random
import struct
from dataclasses import replace
from pathlib import Path

from process_slots import committed, strike

from driver_in_process import PATIENT, SPEC, use_processes
from held_input import Hold
from snapline.journal.entry import Happened
from snapline.rundir.program import build_job
from snapline.runs import run as runtime
from snapline.runs.drive import drive
from snapline.runtime.driver.driver import Driver
from snapline.runtime.driver.inject import RunInjector
from snapline.storage.files.frames import walk_from

COMMITS = 5
"""How many lines are committed at least after the kill."""
MARK = b"snapline: synced through"


class Story:
    """When a line is committed, slot 1 is killed; when some more are, the input may end."""

    def __init__(self, hold: Hold) -> None:
        self.hold = hold
        self.commits = 0  #: since the kill; before it none is counted
        self.kill: RunInjector | None = None

    def see(self, driver: Driver, entry: Happened) -> None:
        if not committed(driver, entry):
            return
        if self.kill is None:
            self.kill = strike(driver, "kill slot=1 at=0ms")
        elif entry.epoch > 1:
            self.commits += 1
            if self.commits == COMMITS:
                self.hold.let_go()


def driven(monkeypatch, runs: Path, protocol: str, **described) -> Driver:
    """The driver of a run that is over, in which slot 1 was killed once."""
    use_processes(monkeypatch)
    hold = Hold(runs)
    story, drivers = Story(hold), []

    def noted(*given, **named) -> Driver:
        drivers.append(drive(*given, observers=[story.see], **named))
        return drivers[-1]

    monkeypatch.setattr(runtime, "drive", noted)
    monkeypatch.setattr(runtime, "build_job", lambda *what: hold.held(build_job(*what)))
    size = {"rate": 600, "duration_ms": 4_000}  # so that messages are in flight
    spec = replace(SPEC, protocol=protocol, slots=2, **size, **described)
    finished = runtime.run(spec, runs=runs, timeouts=PATIENT)
    assert finished.verdict.kept == "yes", finished.verdict
    assert story.commits >= COMMITS
    return drivers[-1]


def vouched_bytes(path: Path) -> int:
    """How many bytes of a file were durable: all of an object, of others as many as the last mark says."""
    data = path.read_bytes()
    if path.suffix not in (".log", ".egress"):
        return len(data)
    at = data.rfind(MARK)
    return struct.unpack_from("<QQ", data, at + len(MARK))[1] if at >= 0 else 0


def needed_bytes(path: Path, stop: int | None) -> int:
    """How many bytes of an output file its first rows take, up to row `stop`; of others all."""
    if path.suffix != ".egress":
        return vouched_bytes(path)
    for behind, payload in walk_from(path, 0):
        first, count, _ = struct.unpack_from("<QIQ", payload)
        if first + count >= stop:
            return behind
    raise AssertionError(f"{path} has no row {stop}")


class Damaged:
    """A file that is damaged for the length of a `with` block, and then as it was."""

    def __init__(self, path: Path, content: bytes | None) -> None:
        self.path, self.content, self.before = path, content, path.read_bytes()

    def __enter__(self) -> None:
        self.path.unlink()
        if self.content is not None:
            self.path.write_bytes(self.content)

    def __exit__(self, *_: object) -> None:
        self.path.write_bytes(self.before)


def flipped(path: Path, rng: random.Random, below: int) -> Damaged:
    content = bytearray(path.read_bytes())
    content[rng.randrange(below)] ^= 1 << rng.randrange(8)
    return Damaged(path, bytes(content))


def truncated(path: Path, rng: random.Random, below: int) -> Damaged:
    return Damaged(path, path.read_bytes()[: rng.randrange(below)])


def removed(path: Path) -> Damaged:
    return Damaged(path, None)
