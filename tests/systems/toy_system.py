"""A system that lives in the test's own process: it counts like SST, and has the flaws that it is given.

Windows come out when the input has ended, in two halves; after the first, a round is under way. What a kill
does to that half is the flaw.
"""

import time
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np

from snapline.batch import Batch, concat
from snapline.core.guarantee import Guarantee
from snapline.systems.harness import course
from snapline.systems.harness.base import State, VisibleRows

WINDOW_MS = 400


def use_toy_clock(monkeypatch):
    """Let time pass when somebody sleeps, and at no other moment: no machine is too slow for that."""
    now_s = [1_800_000_000.0]

    def sleep(seconds):
        now_s[0] += seconds

    clock = SimpleNamespace(time=lambda: now_s[0], monotonic=lambda: now_s[0], sleep=sleep)
    monkeypatch.setattr(course, "time", clock)
    monkeypatch.setitem(globals(), "time", clock)


@dataclass
class Toy:
    """Give it flaws: `repeats` writes the first half again after a kill, `loses` forgets it."""

    repeats: bool = False
    loses: bool = False
    fails: str | None = None
    name: str = "toy"
    promise: Guarantee = Guarantee.EXACTLY_ONCE
    workloads: tuple[str, ...] = ("sst",)
    calls: list[str] = field(default_factory=list)
    taken: list[Batch] = field(default_factory=list)
    written: list[VisibleRows] = field(default_factory=list)
    ended: bool = False
    halves: int = 0
    down: int = 0  # for so many looks
    problem: str | None = None

    def refusal(self, fault):
        return "it has no slots" if fault.kind == "kill" else None

    def start(self, work):
        self.calls.append("start")
        assert work.directory.is_dir()
        assert not list(work.directory.iterdir())

    def stop(self):
        self.calls.append("stop")

    def input(self, stream, batch):
        assert stream == "gets"
        self.taken.append(batch)

    def end_input(self):
        self.calls.append("end")
        self.ended = True

    def look(self):
        if self.down:
            self.down -= 1
            return State.DOWN
        if self.ended and self.fails:
            self.problem = self.fails
            return State.FAILED
        if self.ended and self.halves < 2:
            self._write(self.halves)
            self.halves += 1
        return State.FINISHED if self.halves == 2 and self.ended else State.RUNNING

    def kill(self, target, number=0):
        self.calls.append(f"kill {target}" if target == "driver" else f"kill {target} {number}")
        if target == "executor":
            return [3]
        if self.down:
            return []
        self.down = 2
        if self.loses:
            self.written = []
        if self.repeats and self.halves:
            self.halves -= 1
        return [1, 2]

    def pause(self):
        self.calls.append("pause driver")
        return [1, 2]

    def resume(self):
        self.calls.append("resume")

    def disturb(self, fault):
        self.calls.append(str(fault))
        return 1

    def in_round(self):
        return self.halves == 1

    def output(self):
        return {"counts": self.written}

    def late_output(self):
        return None

    def figures(self):
        return {"batches": len(self.taken)}

    def account(self):
        return ["it is a toy"]

    def _write(self, half):
        events = concat(self.taken)
        window = events["time"] - events["time"] % WINDOW_MS
        rows = []
        for resource, start in sorted(set(zip(events["resource"], window, strict=True))):
            ids = events["id"][(events["resource"] == resource) & (window == start)]
            if resource % 2 == half:
                rows.append((resource, start, len(ids), ids.tolist()))
        columns = dict(
            zip(("resource", "window", "count", "ids"), zip(*rows, strict=True), strict=True)
        )
        self.written.append(
            VisibleRows(
                Batch.of(
                    resource=np.array(columns["resource"]),
                    window=np.array(columns["window"]),
                    count=np.array(columns["count"]),
                    ids=list(columns["ids"]),
                ),
                time.time(),
            )
        )
