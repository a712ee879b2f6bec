"""A driver that is killed or stopped while decisions are collected.

`python collected_run.py RUN HOLD PROTOCOL MOMENT` goes on with the run of that directory until its MOMENT:

anchor before, anchor after    it is killed when it writes the second decision that raises the anchor
delete before, delete after    it is killed when it deletes the third old decision
stop 7                         it stops just before it writes decision 7
stop epoch                     it kills slot 0 after each line, and stops just before it writes a decision
                               that begins an epoch, publishes nothing and will be collected
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

from process_slots import PATIENT, a_job, committed, strike

from held_input import Hold
from snapline.engine.coordinator.ledger import Decision, decision_key, decode
from snapline.engine.job import Job
from snapline.journal.entry import Happened
from snapline.rundir.directory import RunDirectory
from snapline.runs.drive import drive
from snapline.runtime.driver import decisions
from snapline.runtime.driver.driver import Driver
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


def stop_when(due: Callable[[Decision], bool], place: Path) -> None:
    """Stop before the first decision that is due is written, and leave its number in a file."""

    def look(store: Any, number: int, data: bytes) -> None:
        if due(decode(data)):
            (place / STOPPED).write_text(str(number))
            os.kill(os.getpid(), signal.SIGSTOP)

    around(decisions, "win", look, nothing)


def begins_an_epoch() -> Callable[[Decision], bool]:
    """Of the decisions in their order: those that begin an epoch, publish nothing and will be collected."""
    last = [0]

    def due(decision: Decision) -> bool:
        begins, last[0] = decision.epoch > last[0], decision.epoch
        return begins and not decision.manifests and decision.number & (decision.number - 1) > 0

    return due


def kill_after_each_line(driver: Driver, happened: Happened) -> None:
    if committed(driver, happened):
        strike(driver, "kill slot=0 at=0ms")


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
            due = begins_an_epoch() if when == "epoch" else (lambda it: it.number == int(when))
            stop_when(due, place)
        case "gone":
            die_when_gone(int(when))
        case _:
            hold.let_go()
    observers = [kill_after_each_line] if moment == "stop epoch" else []
    job, directory = the_job(protocol, hold), RunDirectory(run)
    driver = drive(job, directory, observers=observers, timeouts=replace(PATIENT))
    assert driver.problem is None, driver.problem


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
