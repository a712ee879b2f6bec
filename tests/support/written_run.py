"""A run directory that is written by hand, window by window, as the sinks of a run would."""

from dataclasses import asdict

import numpy as np

from snapline.batch import Batch, concat
from snapline.dataflow.partition import targets_of
from snapline.ids import Epoch, TaskId
from snapline.journal.entry import COORDINATOR, Happened
from snapline.journal.fault_happenings import ProcessKilled
from snapline.journal.happenings import JobFinished, JobRunning
from snapline.rundir.directory import RunDirectory
from snapline.rundir.journal_file import JournalFile
from snapline.rundir.program import find_program
from snapline.rundir.results import VERSION
from snapline.rundir.spec import Spec
from snapline.storage.api import Extent, Life

WINDOW_MS = 400
INTERVAL_MS = 1_000
SINKS = ("counts", "late")


class WrittenRun:
    """Two slots whose sinks write and publish as they are told; `clock` is a list with the time in ms."""

    def __init__(self, tmp_path, clock, flow="sst", protocol="aligned", *, seconds=6, **settings):
        self.clock, self.flow, self.origin_ms = clock, flow, clock[0]
        spec = Spec(
            flow,
            protocol=protocol,
            slots=2,
            rate=200,
            duration_ms=seconds * 1_000,
            interval_ms=INTERVAL_MS,
            size="small",
            settings=tuple(settings.items()),
            origin_s=clock[0] / 1000,
        )
        self.directory = RunDirectory.create(tmp_path, flow, protocol, asdict(spec))
        self.outlet = self.directory.outlet
        self.lineage = find_program(spec).lineage
        events = self.lineage.events()
        windows = events["time"] - events["time"] % WINDOW_MS
        self.events = events.with_columns(window=windows, task=targets_of(events, ["resource"], 2))
        self.windows = np.unique(windows).tolist()
        self.tasks = [TaskId(f"{sink}/{index}") for sink in SINKS for index in (0, 1)]
        self.public = dict.fromkeys(self.tasks, 0)
        self.epoch = self.number = 0
        self.roll_back()

    def roll_back(self):
        """New lives, which go on behind what is public."""
        self.epoch += 1
        lives = {task: Life(task, self.epoch, 1) for task in self.tasks}
        self.egress = {t: self.outlet.open(lives[t], self.public[t]) for t in self.tasks}

    def rows(self, window, task, without=()):
        """What is right for a window, but for some ids."""
        of = (self.events["window"] == window) & (self.events["task"] == task)
        events = self.events.take(of & ~np.isin(self.events["id"], list(without)))
        kinds = {False: "get_ids", True: "post_ids"}
        found = []
        for resource in np.unique(events["resource"]).tolist():
            mine = events.take(events["resource"] == resource)
            ids = {name: mine["id"][mine["post"] == post] for post, name in kinds.items()}
            row = {"resource": [resource], "window": [window]}
            if self.flow == "sst":
                row |= {"count": [len(mine)], "ids": [mine["id"].tolist()]}
            else:
                row |= {"gets": [len(ids["get_ids"])], "posts": [len(ids["post_ids"])]}
                row |= {name: [each.tolist()] for name, each in ids.items()}
            found.append(Batch.of(**row))
        return concat(found) if found else Batch({}, 0)

    @property
    def may_be_late(self):
        """The ids of events that may be late, as far as the watermark can have come."""
        closing = self.events["window"] + WINDOW_MS + self.lineage.lateness_ms
        return self.events["id"][closing <= self.events["watermark"]]

    def write(self, sink, index, rows):
        if len(rows):
            self.egress[TaskId(f"{sink}/{index}")].append(rows)

    def write_window(self, window, tasks=(0, 1), without=()):
        """The right rows of a window, when it is over."""
        self.clock[0] = max(self.clock[0], self.origin_ms + window + 2 * WINDOW_MS)
        for task in tasks:
            self.write("counts", task, self.rows(window, task, without))

    def write_late(self, ids):
        for task in (0, 1):
            mine = np.isin(self.events["id"], ids) & (self.events["task"] == task)
            self.write("late", task, self.events.take(mine).select("id", "time", "resource"))

    def publish(self, *sinks):
        """All that was written, or only that of some sinks; under `none` all is public anyway."""
        extents = {}
        for task, egress in self.egress.items():
            egress.sync()
            if task.partition("/")[0] in (sinks or SINKS) and egress.position > self.public[task]:
                extents[task] = Extent(egress.file, self.public[task], egress.position)
                self.public[task] = egress.position
        self.number += 1
        assert self.outlet.publish(self.number, extents)

    def flush(self):
        for egress in self.egress.values():
            egress.flush()

    def end(self, kept="yes", because="all is well", kill_s=1, problem=None):
        """The run is over, in which slot 0 was killed."""
        journal = JournalFile(self.directory.path / "journal" / "driver-1.jsonl")
        at_us = kill_s * 1_000_000
        for what in (ProcessKilled(f"kill slot=0 at={kill_s}s"), JobRunning()):
            journal.add(Happened(at_us, COORDINATOR, Epoch(1), what))
        at_us = (self.clock[0] - self.origin_ms) * 1000
        journal.add(Happened(at_us, COORDINATOR, Epoch(1), JobFinished()))
        journal.close()
        result = {
            "version": VERSION,
            "kept": kept,
            "because": because,
            "problem": problem,
            "problems": [],
            "faults": [],
        }
        self.directory.write("result.json", {**result, "metrics": {}, "rows": {}})
