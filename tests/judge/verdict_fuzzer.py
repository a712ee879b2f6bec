"""A fuzzer of verdicts: right outputs, and right outputs with one random change, are given to the judge.

    python tests/judge/verdict_fuzzer.py --cases 5000 --seed 1

A case writes a run directory by hand: the right output of a workload, spread over sink tasks, lives, files
and manifests at random, with leftovers of lives that were rolled back. Then it changes one thing: a cell, a
row, a manifest. A plain reader, written without any of the judge's code, says whether that altered what a
reader of the output sees, or broke the chain of manifests. If it did, the judge must not say *yes*; if it
did not, the judge must.
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np

from snapline.dataflow.deploy import deploy
from snapline.engine.reference.reference import reference_output
from snapline.ids import Epoch, TaskId
from snapline.journal.entry import COORDINATOR, Happened
from snapline.journal.happenings import JobFinished
from snapline.judge.evidence import RunEnding
from snapline.judge.run_directory import judge
from snapline.rundir.directory import RunDirectory
from snapline.rundir.journal_file import JournalFile
from snapline.rundir.program import find_program
from snapline.rundir.spec import Spec
from snapline.storage.api import Extent, Life, OutputPiece
from snapline.storage.codec import digest_of
from snapline.workload import WORKLOADS
from snapline.workload.reachability.oracle import simple_paths, world_of

SLOTS = 2
DIGEST_BYTES = len(digest_of(b"")) // 2


@dataclass(frozen=True)
class Fuzzed:
    """One case: what was done, whether it matters, and what the judge said."""

    workload: str
    change: str
    altered: bool
    kept: str
    because: str

    @property
    def wrong(self):
        return (self.kept == "yes") == self.altered


def spec_for(workload):
    return Spec(
        workload,
        protocol="unaligned",
        slots=SLOTS,
        rate=60,
        duration_ms=2_000,
        size="small",
        origin_s=1_000.0,
    )


@cache
def right(workload, order):
    flow = find_program(spec_for(workload)).flow
    outputs = reference_output(deploy(flow, SLOTS), order)
    if workload != "reachability":
        return outputs
    # Paths over links that were deleted may come out or not: whoever drops one alters nothing.
    alive = {
        (source, tuple(links))
        for paths in simple_paths(world_of(spec_for(workload).params))
        for source, links, lives in paths.select("source", "links", "alive").rows()
        if lives
    }
    rows = outputs["paths"]
    must = [(s, tuple(links)) in alive for s, links in rows.select("source", "links").rows()]
    return {"paths": rows.take(np.array(must))}


# Writing a run directory.


class Writer:
    """Spreads an output over tasks, lives, files and manifests, at random."""

    def __init__(self, runs, workload, rng):
        self.rng = rng
        self.directory = RunDirectory.create(runs, "x", "x", asdict(spec_for(workload)))
        self.outlet = self.directory.outlet

    def write(self, outputs):
        cuts = {}
        for sink, rows in outputs.items():
            owner = np.array([self.rng.randrange(SLOTS) for _ in range(len(rows))], np.int64)
            for index in range(SLOTS):
                task = TaskId(f"{sink}/{index}")
                cuts[task] = self._task(task, rows.take(np.flatnonzero(owner == index)))
        self._publish(cuts)
        journal = JournalFile(self.directory.path / "journal" / "driver-1.jsonl")
        journal.add(Happened(9000000, COORDINATOR, Epoch(1), JobFinished()))
        journal.close()

    def _task(self, task, rows):
        """The public stretches of a task in order: (file, start, stop)."""
        stretches, at = [], 0
        for epoch in range(1, self.rng.choice([1, 1, 2, 3]) + 1):
            egress = self.outlet.open(Life(task, epoch, 1), at)
            last = self.rng.randint(at, len(rows))
            self._append(egress, rows, at, last)
            if self.rng.random() < 0.5 and len(rows):  # leftovers that were never published
                self._append(egress, rows, 0, self.rng.randint(0, len(rows)))
            egress.sync()
            stretches.append((egress.file, at, last))
            at = last
        egress = self.outlet.open(Life(task, 9, 1), at)
        self._append(egress, rows, at, len(rows))
        egress.sync()
        return [*stretches, (egress.file, at, len(rows))]

    def _append(self, egress, rows, start, stop):
        while start < stop:
            until = min(stop, start + self.rng.randint(1, 40))
            egress.append(rows.slice(start, until))
            start = until

    def _publish(self, cuts):
        pending = {task: self._pieces(stretches) for task, stretches in cuts.items()}
        number = 0
        while any(pending.values()):
            extents = {
                task: Extent(*pieces.pop(0))
                for task, pieces in pending.items()
                if pieces and self.rng.random() < 0.7
            }
            number += 1
            assert self.outlet.publish(number, extents)

    def _pieces(self, stretches):
        pieces = []
        for file, start, stop in stretches:
            middle = self.rng.randint(start, stop)
            pieces += [(file, start, middle), (file, middle, stop)]
        return pieces


# Changes.


def drop_row(outputs, rng):
    sink, at = a_row(outputs, rng)
    return {**outputs, sink: outputs[sink].take(np.delete(np.arange(len(outputs[sink])), at))}


def repeat_row(outputs, rng):
    sink, at = a_row(outputs, rng)
    index = np.insert(np.arange(len(outputs[sink])), rng.randint(0, at), at)
    return {**outputs, sink: outputs[sink].take(index)}


def shuffle_rows(outputs, rng):
    index = {sink: [*range(len(rows))] for sink, rows in outputs.items()}
    for order in index.values():
        rng.shuffle(order)
    return {s: rows.take(np.array(index[s], np.int64)) for s, rows in outputs.items()}


def swap_cell(outputs, rng):
    """A cell gets the value that another row has there."""
    sink, at = a_row(outputs, rng)
    rows, name = outputs[sink], rng.choice([*outputs[sink].columns])
    index = np.arange(len(rows))
    index[at] = rng.randrange(len(rows))
    return {**outputs, sink: rows.with_columns(**{name: rows.select(name).take(index)[name]})}


def add_to_cell(outputs, rng):
    sink, at = a_row(outputs, rng)
    rows = outputs[sink]
    numbers = [name for name in rows.columns if isinstance(rows[name], np.ndarray)]
    name = rng.choice(numbers)
    column = rows[name].copy()
    if column.dtype == np.bool_:
        column[at] ^= True
    else:
        column[at] += rng.choice([-1, 1, 7, -(10**6)])
    return {**outputs, sink: rows.with_columns(**{name: column})}


def a_row(outputs, rng):
    sink = rng.choice([sink for sink, rows in outputs.items() if len(rows)])
    return sink, rng.randrange(len(outputs[sink]))


ROWS = [drop_row, repeat_row, shuffle_rows, swap_cell, add_to_cell]


def manifests(directory):
    return sorted((directory.path / "output" / "manifests").glob("*.obj"), key=number_of)


def number_of(path):
    return int(path.stem)


def parsed(path):
    return json.loads(path.read_bytes()[:-DIGEST_BYTES])


def forge(path, content):
    data = json.dumps(content).encode()
    path.write_bytes(data + bytes.fromhex(digest_of(data)))


def remove_manifest(directory, rng):
    rng.choice(manifests(directory)).unlink()


def copy_manifest(directory, rng):
    source, target = rng.choice(manifests(directory)), rng.choice(manifests(directory))
    target.write_bytes(source.read_bytes())


def add_manifest(directory, rng):
    paths = manifests(directory)
    (paths[0].parent / f"{len(paths) + 1}.obj").write_bytes(rng.choice(paths).read_bytes())


def swap_manifests(directory, rng):
    one, two = rng.choice(manifests(directory)), rng.choice(manifests(directory))
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)


def shift_extent(directory, rng):
    path = rng.choice([path for path in manifests(directory) if parsed(path)["extents"]])
    content = parsed(path)
    task = rng.choice([*content["extents"]])
    extent = content["extents"][task]
    extent[rng.choice([1, 2])] += rng.choice([-2, -1, 1, 2])
    forge(path, content)


def drop_extent(directory, rng):
    path = rng.choice([path for path in manifests(directory) if parsed(path)["extents"]])
    content = parsed(path)
    del content["extents"][rng.choice([*content["extents"]])]
    forge(path, content)


def other_file(directory, rng):
    path = rng.choice([path for path in manifests(directory) if parsed(path)["extents"]])
    content = parsed(path)
    task = rng.choice([*content["extents"]])
    files = [file.stem for file in (directory.path / "output").glob("*.egress")]
    content["extents"][task][0] = rng.choice(files)
    forge(path, content)


def flip_byte(directory, rng):
    files = [path for path in (directory.path / "output").rglob("*") if path.is_file()]
    path = rng.choice([path for path in files if path.stat().st_size])
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


FILES = [
    *(remove_manifest, copy_manifest, add_manifest, swap_manifests),
    *(shift_extent, drop_extent, other_file, flip_byte),
]


# The plain reader: what somebody sees who reads the published output, file by file.


def plain_view(directory):
    """The rows of every sink as multisets, and whether the chain holds; None if it cannot be read."""
    places = [number_of(path) for path in manifests(directory)]
    holds = places == [*range(1, len(places) + 1)]
    seen, files, rows = {}, {}, {}
    try:
        for path in manifests(directory):
            data = path.read_bytes()
            assert digest_of(data[:-DIGEST_BYTES]) == data[-DIGEST_BYTES:].hex()
            content = parsed(path)
            holds &= content["number"] == number_of(path)
            for task, (file, start, stop) in content["extents"].items():
                holds &= start == seen.get(task, 0) and start <= stop
                holds &= file.startswith(task.replace("/", "-") + ".e")
                used = files.setdefault(task, [])
                holds &= file not in used[:-1]
                used += [file] if file not in used else []
                seen[task] = stop
                piece = OutputPiece(file, start, stop)
                for written in directory.output.read(piece) if start < stop else ():
                    sink = task.rpartition("/")[0]
                    rows.setdefault(sink, Counter()).update(map(repr, written.rows.rows()))
    except Exception:
        return None
    return rows, holds


def case(seed, runs, changed):
    """Write one run, change it or not, and judge it."""
    rng = random.Random(seed)
    workload = rng.choice([*WORKLOADS])
    outputs = right(workload, rng.choice([0, 1, 2]))
    writer = Writer(runs, workload, rng)
    before = {s: Counter(map(repr, rows.rows())) for s, rows in outputs.items() if len(rows)}
    change = rng.choice(ROWS + FILES) if changed else shuffle_rows
    if change in ROWS:
        writer.write(change(outputs, rng))
    else:
        writer.write(outputs)
        change(writer.directory, rng)
    altered = plain_view(writer.directory) != (before, True)
    judgement = judge(writer.directory, ending=RunEnding())
    shutil.rmtree(writer.directory.path)
    verdict = judgement.verdict
    return Fuzzed(workload, change.__name__, altered, verdict.kept, verdict.because)


def fuzz(cases, seed, runs, changed, tell=lambda done: None):
    """The wrong verdicts among so many cases, and how many cases were altered."""
    wrong, altered = [], 0
    for number in range(cases):
        found = case(f"{seed}:{changed}:{number}", runs, changed)
        altered += found.altered
        if found.wrong:
            wrong.append((number, found))
        if number % 100 == 99:
            tell(number + 1)
    return wrong, altered


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=5_000, help="of each kind")
    parser.add_argument("--seed", default="1")
    asked = parser.parse_args()
    began = time.time()
    failed = False
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as home:
        for changed in (True, False):
            wrong, altered = fuzz(
                *(asked.cases, asked.seed, Path(home), changed),
                lambda done: print(f"\r{done:,} cases", end="", file=sys.stderr, flush=True),
            )
            kind = "with one change" if changed else "unchanged"
            print(
                f"\r{asked.cases:,} outputs {kind}: {altered:,} altered, {len(wrong)} wrong verdicts"
            )
            for number, found in wrong[:20]:
                print(f"  case {number}: {found}")
            failed |= bool(wrong)
    print(f"{time.time() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
