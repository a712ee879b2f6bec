"""Every port in every form, behind one small harness: open for a life, crash a life."""

import multiprocessing
import os
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from snapline.batch import Batch
from snapline.core.messages import Message
from snapline.ids import ChannelId, task_id
from snapline.storage.api import Life

CHANNEL = ChannelId("bids/0>count/1")
OTHER = ChannelId("bids/0>count/0")


def life(epoch: int = 1, incarnation: int | None = None, operator: str = "bids") -> Life:
    return Life(task_id(operator, 0), epoch, incarnation or epoch)


def message(seq: int, epoch: int = 1, channel: ChannelId = CHANNEL) -> Message:
    """A message whose content tells where it came from."""
    return Message(channel, seq, epoch, Batch.of(n=[seq, epoch]), b"header", 1000 + seq)


def seqs(messages) -> list[tuple[int, int]]:
    """Seq and epoch of messages, after a look at their content."""
    messages = list(messages)
    for m in messages:
        assert m == message(m.seq, m.epoch, m.channel)
    return [(m.seq, m.epoch) for m in messages]


class MemoryHarness:
    """Lives share one object; a crash is a method of it."""

    def __init__(self, shared: Any) -> None:
        self.shared = shared
        self.open = shared.open
        self.crash = shared.crash
        self.reader = shared
        self.loses_unsynced = True


class FileHarness:
    """Lives share a directory alone: every one opens it anew, as another process would."""

    def __init__(
        self, make: Any, directory: Path, loses_unsynced: bool = True, *, read: Any = None
    ) -> None:
        self.make, self.directory, self.read = make, directory, read
        self.loses_unsynced = loses_unsynced  # a segment that is full leaves the process early
        self.opened: dict[Life, Any] = {}

    @property
    def shared(self) -> Any:
        return self.make(self.directory)

    @property
    def reader(self) -> Any:
        return self.read(self.directory)

    def open(self, life: Life, *position: int) -> Any:
        self.opened[life] = self.shared.open(life, *position)
        return self.opened[life]

    def crash(self, life: Life) -> None:
        self.opened.pop(life).close()

    def close(self) -> None:
        for file in self.opened.values():
            file.close()


def spy_on_fsync(monkeypatch: Any) -> set[int]:
    """The inodes that are synced from now on."""
    synced: set[int] = set()
    fsync = os.fsync

    def spy(fd: int) -> None:
        fsync(fd)
        synced.add(os.fstat(fd).st_ino)

    monkeypatch.setattr("os.fsync", spy)
    return synced


def race(worker: Any, directory: Path, racers: int = 3) -> list[Any]:
    """Let real processes run `worker(racer, directory)` at the same time; their results in order."""
    context = multiprocessing.get_context("fork")
    gate = context.Barrier(racers, timeout=30)

    def run(racer: int, results: Connection) -> None:
        gate.wait()
        results.send(worker(racer, directory))

    pipes = [context.Pipe(duplex=False) for _ in range(racers)]
    processes = [context.Process(target=run, args=(n, pipes[n][1])) for n in range(racers)]
    for process in processes:
        process.start()
    for _, writer in pipes:
        writer.close()  # so that a racer which dies is an EOFError here, not a silence
    answers = [reader.recv() for reader, _ in pipes]
    for process in processes:
        process.join()
    return answers
