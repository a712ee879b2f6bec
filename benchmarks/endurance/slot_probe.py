"""A slot that writes down what it costs: one line of JSON a second, in `probe/` of the run directory.

It is the slot of any run; only how long captures and alignments take is noted besides, and once a second
its CPU time, its memory and the size of its state. The state's own size is that of the arrays that its
operators hold, as far as they are filled; an array that several share counts once.
"""

import json
import pickle
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.memory import rss
from snapline.core.effects import Block, Snapshot
from snapline.dataflow.operators.operator import Capture
from snapline.dataflow.state.columns import Fixed
from snapline.engine.slot.checkpoints import Captured, CheckpointWriter
from snapline.engine.slot.task import WATERMARKS, Task
from snapline.ids import Micros, TaskId
from snapline.journal.entry import Entry, Handled
from snapline.kernels import cache
from snapline.runtime.slot.process import SlotProcess

PROGRAM = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from benchmarks.endurance.slot_probe import main
main()
"""


@dataclass
class Line:
    """One second of one slot. Times are those of the snapshots of this second."""

    at_s: float = 0.0  # since input began to be due
    cpu_s: float = 0.0  # so far
    passes: int = 0  # inputs that were taken or read, so far
    rss: int = 0
    state: int = 0
    held: int = 0  # the state with the room that its arrays have to spare
    longest_us: float = 0.0  # between two passes of the loop: it stood still, or had nothing to do
    capture_us: list[float] = field(default_factory=list)  # the operator's own part of a snapshot
    delta_us: list[float] = field(default_factory=list)  # until a task goes on behind a delta ...
    full_us: list[float] = field(default_factory=list)  # ... and behind a full capture
    align_us: list[float] = field(default_factory=list)  # first marker to snapshot
    delta_rows: int = 0
    delta_bytes: int = 0
    full_bytes: int = 0


class ProbedSlot(SlotProcess):
    """A slot process that watches itself."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.line = Line()
        self._passes = 0
        self._passed_s = time.perf_counter()
        self._first_marker: dict[TaskId, Micros] = {}
        folder = self.directory.path / "probe"
        folder.mkdir(exist_ok=True)
        self._file = (folder / f"{self.tag}.jsonl").open("w")
        self.loop.after(1.0, self._tell)

    def _tell(self) -> None:
        if self.engine is not None and self.engine.running:
            line, self.line = self.line, Line()
            line.at_s = self.now_us() / 1e6
            line.cpu_s = time.process_time()
            line.passes = self._passes
            line.rss = rss()
            sizes = [sizes_of(task.operator) for task in self.engine.tasks.values()]
            line.state = sum(filled for filled, _ in sizes)
            line.held = sum(held for _, held in sizes)
            self._file.write(json.dumps(asdict(line)) + "\n")
            self._file.flush()
        self.loop.after(1.0, self._tell)

    def worked(self, records: int) -> None:
        """Counts passes of the loop, and notes the longest."""
        self._passes += 1
        now_s = time.perf_counter()
        self.line.longest_us = max(self.line.longest_us, (now_s - self._passed_s) * 1e6)
        self._passed_s = now_s

    def journal(self, entry: Entry) -> None:
        """Notes when a task waits for the other markers of a round."""
        super().journal(entry)
        if isinstance(entry, Handled):
            for effect in entry.effects:
                if isinstance(effect, Block):
                    self._first_marker.setdefault(TaskId(entry.actor), entry.at_us)
                elif isinstance(effect, Snapshot) and TaskId(entry.actor) in self._first_marker:
                    first_us = self._first_marker.pop(TaskId(entry.actor))
                    self.line.align_us.append(entry.at_us - first_us)


def watch_captures() -> None:
    """Time every snapshot that has rows; what is stored is stored beside the loop."""
    take, capture_of = CheckpointWriter.take, Task.capture
    captured_us: list[float] = []  # the last one

    def noted(task: Task, *, full: bool) -> Capture:
        before_s = time.perf_counter()
        capture = capture_of(task, full=full)
        captured_us[:] = [(time.perf_counter() - before_s) * 1e6]
        return capture

    def timed(writer: CheckpointWriter, task: Captured, effect: Snapshot) -> None:
        before_s = time.perf_counter()
        take(writer, task, effect)
        took_us = (time.perf_counter() - before_s) * 1e6
        capture = writer.pending[effect.checkpoint].capture
        parts = [part for name, part in capture.parts.items() if name != WATERMARKS]
        rows, size = sum(map(len, parts)), sum(part.nbytes for part in parts)
        shell = writer.shell
        if isinstance(shell, ProbedSlot) and rows:
            line = shell.line
            line.capture_us += captured_us
            (line.full_us if capture.full else line.delta_us).append(took_us)
            if capture.full:
                line.full_bytes += size
            else:
                line.delta_rows += rows
                line.delta_bytes += size

    setattr(Task, "capture", noted)  # noqa: B010 - mypy wants no method replaced
    setattr(CheckpointWriter, "take", timed)  # noqa: B010


def size_of(operator: object) -> int:
    """The bytes of all arrays behind an operator, as far as they are filled."""
    return sizes_of(operator)[0]


def sizes_of(operator: object) -> tuple[int, int]:
    """The bytes of all arrays behind an operator: as far as they are filled, and with room to spare."""
    found = {id(array): (size, array.nbytes) for array, size in _arrays(operator, set())}
    return sum(size for size, _ in found.values()), sum(held for _, held in found.values())


def _arrays(thing: object, seen: set[int]) -> Iterator[tuple[np.ndarray, int]]:
    if id(thing) in seen or isinstance(thing, str | bytes | int | float | type(None) | type):
        return
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        whole = thing.base if isinstance(thing.base, np.ndarray) else thing
        yield whole, whole.nbytes
    elif isinstance(thing, Fixed):
        yield thing.data, thing.view().nbytes
    else:
        for part in _parts(thing):
            yield from _arrays(part, seen)


def _parts(thing: object) -> Sequence[object]:
    if isinstance(thing, Mapping):
        return [*thing.values()]
    if isinstance(thing, list | tuple):
        return () if len(thing) > 1_000 else thing  # a dictionary's words: no arrays in it
    slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    held = [getattr(thing, name) for name in slots if hasattr(thing, name)]
    return [*getattr(thing, "__dict__", {}).values(), *held]


def main() -> None:
    """Be a slot, as `ProcessSlots` starts one."""
    cache.load()
    watch_captures()
    ProbedSlot(*pickle.load(sys.stdin.buffer), sys.argv[1]).run()
