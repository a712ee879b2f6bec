"""A run directory with decisions and manifests as a coordinator makes them, without a single process.

The job is `a -> b`; `b` is a sink. Every call is answered at once, so a test writes the ledger that it
wants and then does to its files what it likes.
"""

import shutil
from dataclasses import replace
from pathlib import Path

from snapline.batch import Batch
from snapline.core.guarantee import Guarantee
from snapline.core.messages import CheckpointMeta
from snapline.core.protocol import Options
from snapline.core.topology import Channel, Topology
from snapline.dataflow.deploy import Deployment
from snapline.engine.coordinator.decider import Decider, Intent
from snapline.engine.coordinator.ledger import win
from snapline.engine.job import Job, Settings
from snapline.ids import ChannelId, TaskId
from snapline.journal.entry import COORDINATOR, Happened
from snapline.journal.happenings import LineDecided
from snapline.protocols.aligned import ALIGNED
from snapline.rundir.directory import RunDirectory
from snapline.rundir.journal_file import JournalFile
from snapline.storage.api import Life

A, B = TaskId("a/0"), TaskId("b/0")
TOPOLOGY = Topology((A, B), (Channel(ChannelId("a>b"), A, B),))


def job(run: str = "", publish_lag: int = 0) -> Job:
    deployment = Deployment("test", 1, TOPOLOGY, {}, {}, "graph-input")
    settings = Settings(publish_lag=publish_lag)
    return Job("test", deployment, ALIGNED, Options(), Guarantee.EXACTLY_ONCE, settings, run=run)


class Hand:
    """A shell that writes at once, and answers."""

    def __init__(self, store, outlet, collect=True):
        self.store, self.outlet, self.collect = store, outlet, collect
        self.decider: Decider

    def decide(self, ticket, key, data):
        found = win(self.store, ticket.number, data)
        if found == data:
            self.decider.done(ticket)
        else:
            self.decider.conflict(ticket, found)

    def publish(self, ticket, number, extents):
        assert self.outlet.publish(number, extents)
        self.decider.done(ticket)

    def compact(self, through):
        if self.collect:
            self.outlet.compact(through)

    def delete(self, key):
        if self.collect:
            self.store.delete(key)


class Coordinator:
    """One that decides; `past` is what it goes on from."""

    def __init__(self, store, outlet, author="first", past=None, run="", of=None, **how):
        hand = Hand(store, outlet, how.pop("collect", True))
        self.outlet = outlet
        self.job = replace(of, run=run) if of is not None else job(run, **how)
        self.deposed = False
        self.decider = hand.decider = Decider(
            self.job, hand, author, lambda intent: None, self._depose
        )
        self.epoch, self.rows, self.checkpoint, self.egress = 0, 0, 0, None
        if past is not None:
            self.decider.resume(past)
            self.epoch = past.epoch
            chain = past.chains[B]
            self.rows = chain[-1].position if chain else 0
            self.checkpoint = chain[-1].checkpoint if chain else 0
        self.begin()

    def _depose(self):
        self.deposed = True

    def _intent(self, begins):
        chains = dict.fromkeys((A, B), ())
        if self.checkpoint:
            fields = {"epoch": self.epoch, "incarnation": 1}
            chains[A] = (CheckpointMeta(A, self.checkpoint, **fields),)
            chains[B] = (CheckpointMeta(B, self.checkpoint, position=self.rows, **fields),)
        return Intent(chains, self.epoch, {0: 1}, b"memo", begins)

    def begin(self):
        """An epoch begins, at the line that there is."""
        line = dict(self.decider.chains)
        self.epoch += 1
        self.decider.ask(replace(self._intent(True), chains=line))
        self.egress = None

    def commit(self, rows=3):
        """Write some output, and commit a line that has it."""
        if rows and self.egress is None:
            self.egress = self.outlet.open(Life(B, self.epoch, 1), self.rows)
        if rows:
            self.egress.append(Batch.of(n=list(range(self.rows, self.rows + rows))))
            self.egress.sync()
        self.rows += rows
        self.checkpoint += 1
        self.decider.ask(self._intent(False))
        return self


class WrittenLedger:
    """A run directory whose coordinator has decided some things."""

    def __init__(self, tmp_path: Path, commits: int = 3, rows: int = 3, **options):
        self.directory = RunDirectory.create(tmp_path, "test", "aligned", {"protocol": "aligned"})
        self.options = options
        self.coordinator = self.take_over("first")
        for _ in range(commits):
            self.coordinator.commit(rows)

    @property
    def job(self):
        return self.coordinator.job

    def take_over(self, author, past=None):
        directory = self.directory
        return Coordinator(
            directory.store, directory.outlet, author, past, directory.identity, **self.options
        )

    def copied(self, tmp_path: Path) -> "WrittenLedger":
        """The same run, to be damaged."""
        copy = object.__new__(WrittenLedger)
        path = tmp_path / self.directory.name
        shutil.copytree(self.directory.path, path)
        copy.directory, copy.options = RunDirectory(path), self.options
        copy.coordinator = self.coordinator
        return copy

    def decision(self, number: int) -> Path:
        return self.directory.path / "store" / "decision" / f"{number:08d}.obj"

    def manifest(self, place: int) -> Path:
        return self.directory.path / "output" / "manifests" / f"{place}.obj"

    def note_decided(self, number: int) -> None:
        """What the journal of its driver says."""
        journal = JournalFile(self.directory.path / "journal" / "driver-1.jsonl")
        journal.add(Happened(1, COORDINATOR, 1, LineDecided(number, 1, {})))
        journal.close()
