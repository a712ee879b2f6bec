"""A driver that is killed or stopped while decisions are collected.

`python collected_run.py RUN HOLD PROTOCOL MOMENT` goes on with the run of that directory until its MOMENT:

anchor before, anchor after    it is killed when it writes the second decision that raises the anchor
delete before, delete after    it is killed when it deletes the third old decision
stop 7                         it stops just before it writes decision 7
gone 7                         it is killed when decision 7 was deleted
never                          it lets the input come to its end, and the run with it
"""

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from process_slots import PATIENT, a_job

from held_input import Hold
from snapline.engine.coordinator.ledger import decision_key, decode
from snapline.engine.job import Job
from snapline.rundir.directory import RunDirectory
from snapline.runs.drive import drive
from snapline.runtime.driver import decisions
from snapline.storage.files.store import FileStore
from snapline.workload.common.base import Params

PARAMS = Params(1, 2, 900, 3_000)
STOPPED = "the-driver-has-stopped"


def the_job(protocol: str, hold: Hold) -> Job:
    job = hold.held(a_job("q12", protocol, PARAMS))
    return replace(job, settings=replace(job.settings, whole_every=3))


def around(owner: Any, name: str, before: Callable[..., None], after: Callable[..., None]) -> None:
    """Let something be done before and after each call."""
    call: Callable[..., Any] = getattr(owner, name)

    def extended(*args: Any) -> Any:
        before(*args)
        answer = call(*args)
        after(*args)
        return answer

    setattr(owner, name, extended)


def nothing(*args: Any) -> None:
    """Do nothing."""


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_at_anchor(when: str) -> None:
    seen = {1}

    def look(store: Any, number: int, data: bytes) -> None:
        seen.add(decode(data).anchor.number)
        if len(seen) == 3:
            die()

    around(decisions, "win", *((look, nothing) if when == "before" else (nothing, look)))


def die_at_delete(when: str) -> None:
    deleted = []

    def look(store: Any, key: str) -> None:
        deleted.extend([key] if key.startswith("decision/") else [])
        if len(deleted) == 3:
            die()

    around(FileStore, "delete", *((look, nothing) if when == "before" else (nothing, look)))


def stop_at(number: int, place: Path) -> None:
    def look(store: Any, at: int, data: bytes) -> None:
        if at == number:
            (place / STOPPED).touch()
            os.kill(os.getpid(), signal.SIGSTOP)

    around(decisions, "win", look, nothing)


def die_when_gone(number: int) -> None:
    def look(store: Any, key: str) -> None:
        if key == decision_key(number):
            die()

    around(FileStore, "delete", nothing, look)


def main(run: Path, place: Path, protocol: str, moment: str) -> None:
    """Go on with a run until the moment has come, or to its end."""
    hold = Hold(place, begun=False)
    what, _, when = moment.partition(" ")
    match what:
        case "anchor":
            die_at_anchor(when)
        case "delete":
            die_at_delete(when)
        case "stop":
            stop_at(int(when), place)
        case "gone":
            die_when_gone(int(when))
        case _:
            hold.let_go()
    driver = drive(the_job(protocol, hold), RunDirectory(run), timeouts=replace(PATIENT))
    assert driver.problem is None, driver.problem


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
