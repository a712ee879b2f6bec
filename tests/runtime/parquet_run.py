"""A driver that is killed while it publishes; `python parquet_run.py RUN HOLD PROTOCOL MOMENT`.

It goes on with the run of that directory, and kills itself at its second MOMENT: `manifest`, `rename` or
`names` (when the names of a directory are made durable), `before` or `after` it. With the moment `never` it
lets the input come to its end, and the run with it.
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
from snapline.engine.job import Job
from snapline.rundir.directory import RunDirectory
from snapline.runs.drive import drive
from snapline.storage.files.manifests import FileManifests
from snapline.storage.parquet import sink_files
from snapline.workload.common.base import Params

PARAMS = Params(1, 2, 900, 3_000)
PLACES = {
    "manifest": (FileManifests, "add"),
    "rename": (sink_files, "_rename"),
    "names": (sink_files, "sync_directory"),
}
MOMENTS = [f"{place} {when}" for place in PLACES for when in ("before", "after")]


def the_job(protocol: str, hold: Hold) -> Job:
    return hold.held(a_job("q12", protocol, PARAMS))


def die_at(moment: str) -> None:
    """Let this process be killed the second time that the moment has come."""
    place, _, when = moment.partition(" ")
    owner, name = PLACES[place]
    call: Callable[..., Any] = getattr(owner, name)
    count = 0

    def deadly(*args: Any) -> Any:
        nonlocal count
        count += 1
        if count == 2 and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = call(*args)
        if count == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    setattr(owner, name, deadly)


def main(run: Path, place: Path, protocol: str, moment: str) -> None:
    """Go on with a run until the moment has come, or to its end."""
    hold = Hold(place, begun=False)
    if moment == "never":
        hold.let_go()
    else:
        die_at(moment)
    directory = RunDirectory(run)
    driver = drive(the_job(protocol, hold), directory, timeouts=replace(PATIENT))
    assert driver.problem is None, driver.problem


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
