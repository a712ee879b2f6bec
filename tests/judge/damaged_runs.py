"""Run directories with one file damaged: every kind of file that a run leaves, times every kind of damage.

The runs are real ones, with slots as plain processes: `finished_run` came to its end, `unfinished_run` was
interrupted after some lines. `damage` changes one file of a copy.
"""

import os
import random
import re
import shutil
import signal
from dataclasses import replace

from driver_in_process import PATIENT
from snapline.journal.happenings import OutputPublished
from snapline.rundir.spec import Spec
from snapline.runs import run as run_module
from snapline.runs.interrupt import Interrupted

SPEC = Spec(
    "q12",
    protocol="uncoordinated",
    slots=2,
    rate=600,
    duration_ms=2_500,
    interval_ms=300,
    size="small",
    publish_lag=0,
)

KINDS = {
    "run.json": r"run\.json",
    "origin": r"origin\.obj",
    "result.json": r"result\.json",
    "stored result": r"store/result/.*\.obj",
    "decision": r"store/decision/.*\.obj",
    "snapshot": r"store/snapshot/.*\.obj",
    "message log": r"logs/.*\.log",
    "log index": r"logs/.*\.index",
    "egress": r"output/.*\.egress",
    "manifest": r"output/manifests/\d+\.obj",
    "journal of the driver": r"journal/driver-.*\.jsonl",
    "journal of a slot": r"journal/slot-.*\.jsonl",
}
DRAFT = ".new-"
DAMAGES = ("removed", "truncated", "flipped", "foreign", "directory")


class Interrupter:
    """A watcher that interrupts the run after so many committed lines."""

    def __init__(self, lines):
        self.left = lines

    def event(self, happened):
        if isinstance(happened.what, OutputPublished):
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGINT)

    def second(self, second):
        pass


def finished_run(runs, seed=1):
    return run_module.run(replace(SPEC, seed=seed), runs=runs, timeouts=PATIENT).directory.path


def unfinished_run(runs, seed=1, lines=4):
    """A run that was interrupted after some lines, with much input still to come.

    A busy machine may take longer for its lines than the input lasts; then longer input is tried.
    """
    for duration_ms in (6_000, 20_000, 60_000, 180_000):
        try:
            spec = replace(SPEC, seed=seed, duration_ms=duration_ms)
            run_module.run(spec, runs=runs, watcher=Interrupter(lines), timeouts=PATIENT)
        except Interrupted as interrupted:
            return runs / interrupted.run
    raise AssertionError("it came to its end before it was interrupted")


def files_of(path):
    """The files of a run, by kind; without the drafts that a killed process may have left."""
    found = {kind: [] for kind in KINDS}
    for file in sorted(path.rglob("*")):
        if file.is_file() and not file.name.startswith(DRAFT):
            name = str(file.relative_to(path))
            kind = next((kind for kind, form in KINDS.items() if re.fullmatch(form, name)), None)
            assert kind is not None, f"nobody knows what {name} is"
            found[kind].append(file)
    return {kind: files for kind, files in found.items() if files}


def damage(path, kind, how, other, seed):
    """Damage one file of this kind; `other` is another run, from which a foreign one is taken."""
    rng = random.Random(f"{kind}:{how}:{seed}")
    file = rng.choice(files_of(path)[kind])
    content = file.read_bytes()
    match how:
        case "removed":
            file.unlink()
        case "truncated":
            file.write_bytes(content[: rng.randrange(len(content)) if content else 0])
        case "flipped" if content:
            changed = bytearray(content)
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
            file.write_bytes(changed)
        case "foreign":
            file.write_bytes(rng.choice(files_of(other)[kind]).read_bytes())
        case "directory":
            file.unlink()
            file.mkdir()
    return file


def copy_of(path, home):
    target = home / path.name
    shutil.copytree(path, target)
    return target
