"""A run on a file system that is full for a while; `python full_disk_run.py DIRECTORY PROTOCOL SECONDS`.

The directory is a small file system of its own. As soon as a few lines are committed, it is filled to the
last byte. So many seconds after somebody has noticed there is room again; if that is never to be, the run
is ended after fifteen. What came of it is printed as JSON.
"""

import json
import os
import sys
from pathlib import Path

from process_slots import committed, run_processes

from snapline.journal.happenings import SlotLost, StoreAwaited


def fill(ballast: Path) -> None:
    """Take all the room that there is."""
    with ballast.open("ab", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue


def main(place: Path, protocol: str, full_s: float) -> None:
    """Run, and say what happened."""
    ballast = place / "ballast"
    commits: list[str] = []  #: when: before, full, after
    phase = "before"
    noticed: list[str] = []  #: how it was noticed that nothing can be written

    def make_room() -> None:
        nonlocal phase
        phase = "after"
        ballast.unlink()

    def act(driver, entry) -> None:
        nonlocal phase
        if isinstance(entry.what, StoreAwaited | SlotLost) and phase == "full" and not noticed:
            noticed.append(entry.what)
            if full_s == float("inf"):
                driver.loop.after(15, lambda: driver.finish("nobody made room"))
            else:
                driver.loop.after(full_s, make_room)
        if committed(driver, entry):
            commits.append(phase)
            if len(commits) == 3:
                phase = "full"
                fill(ballast)
                assert os.statvfs(place).f_bavail == 0

    def over(driver, entry) -> bool:
        return bool(noticed)

    outcome = run_processes(place, protocol, on_event=act, until=over)
    rows = sum(len(batch) for batch in outcome.outputs.values())
    json.dump(
        {
            "problem": outcome.problem,
            "kinds": sorted({problem.kind for problem in outcome.problems}),
            "rows": rows,
            "commits": {when: commits.count(when) for when in ("before", "full", "after")},
            "lost": len(outcome.lost),
            "complaints": outcome.complaints,
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
