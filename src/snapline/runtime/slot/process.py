"""A slot as a real process: the loop inside a long-running Spark task.

A process that starts is no slot yet. It listens at the address from which it reached the driver, and
tells it so. It is made a life of a slot, or a spare, or is sent away. As a slot it is the engine's
`Slot` behind real sockets, files and clocks. It exits when the driver says so, when the connection to
it breaks, or when its lease lapses: no process outlives a dead driver for long.
"""

import contextlib
import gc
import random
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from snapline.batch import Batch
from snapline.core.effects import Snapshot, TaskEffect
from snapline.core.messages import Message
from snapline.engine import control
from snapline.engine.job import Job
from snapline.engine.shell import Alarm
from snapline.engine.slot.slot import Slot
from snapline.errors import OperatorFailed
from snapline.ids import CheckpointNo, Epoch, Incarnation, Micros, Millis, SlotId, TaskId
from snapline.journal.entry import Entry, Happened
from snapline.journal.happenings import Happening
from snapline.net.connection import Connection
from snapline.net.framing import WireError
from snapline.net.listener import Listener, dial
from snapline.net.loop import EventLoop
from snapline.net.sign_of_life import SignOfLife
from snapline.rundir.directory import RunDirectory
from snapline.rundir.journal_file import Detail, JournalFile
from snapline.runtime.counted_store import CountedStore
from snapline.runtime.resources import Resources
from snapline.runtime.slot.allocator import give_memory_back
from snapline.runtime.slot.background import Background
from snapline.runtime.slot.last_words import last_word
from snapline.runtime.slot.linger import Linger
from snapline.runtime.slot.meter import Meter
from snapline.runtime.slot.network_faults import NetworkFaults, Who
from snapline.runtime.slot.receivers import FromDriver, FromPeers
from snapline.runtime.slot.storage_shell import StorageShell
from snapline.runtime.slot.warm_up import WarmUp
from snapline.runtime.wire import control_messages
from snapline.runtime.wire.codec import Wire

LAST_WORDS_S = 1.0
"""How long a process that fails waits until the driver has heard why."""

STEPS_PER_POLL = 64
"""Inputs taken before the sockets are looked at again ..."""

WORK_S = 0.02
"""... and for how long, if each of them takes long."""

SWITCH_S = 0.0005
"""How long a thread beside the loop may compute before the loop gets its turn; Python's own is ten times as
long, and every checkpoint would delay messages by that."""

GARBAGE_MIN = 50_000
"""Objects that are made before Python looks for cycles among them: the engine leaves none."""


@dataclass(frozen=True, slots=True)
class SlotSpec:
    """All that a process needs to become a slot, but the run's secret: a spec may be in a file."""

    driver: tuple[str, int]
    run: str  # the path of the run directory
    job: Job
    heartbeat_s: float
    lease_s: float
    computing_s: float  # for how long it may compute without looking at its connections
    journal: Detail = "brief"
    journal_bytes: int | None = None  # of each slot; None: as many as there are


class SlotProcess(StorageShell):
    """One process, and the shell of the slot that it becomes."""

    def __init__(self, spec: SlotSpec, secret: bytes, tag: str = "") -> None:
        self.spec = spec
        self.secret = secret  #: of the run
        self.directory = RunDirectory(Path(spec.run))
        self.directory.check_usable()
        self.tag = tag  #: of the Spark job, so that the driver can cancel it
        self.loop = EventLoop()
        self.wire = Wire.of(spec.job)
        self.storage = self.directory.storage
        self.compresses = spec.job.settings.compress
        self.background = Background(store := CountedStore(self.storage.store), self.loop.post)
        self.listener: Listener | None = None  #: once the driver is reached
        self.visitors = FromPeers(self)  #: the slots that have connected to this one
        self.boss = dial(self.loop, spec.driver, secret, FromDriver(self))
        self.links: dict[tuple[SlotId, Incarnation], Connection] = {}
        self.weather = NetworkFaults(self.loop, self._connections)
        self.peers: Mapping[SlotId, control_messages.Peer] = {}
        self.engine: Slot | None = None
        self.journal_file: JournalFile | None = None
        self.journals_messages = spec.journal == "full"
        self.gathers = True
        self.leaving = False
        self.has_read = False  #: whether a source was read since sockets were looked at
        self.lease_until_s = time.monotonic() + spec.lease_s
        self.meter = Meter(self.wire, Resources(store, lambda: self.background.log_syncs))
        self.warm_up = WarmUp()
        word = self.wire.pack(control_messages.Computing())
        beat_s, patience_s = spec.heartbeat_s, spec.computing_s
        self.sign_of_life = SignOfLife(self.loop, self.boss, word, beat_s, patience_s)
        #: until other slots have to answer: the driver is to give up one that computes for too long
        self.patience_s = 2 * patience_s
        self.linger = Linger(spec.job.settings.linger_ms)
        self.turn = 0
        self.origin_s = time.time()  #: when input began to be due; the driver says it before `Go`

    def run(self) -> None:
        """Run until the process ends; then close all connections, so that others notice at once."""
        give_memory_back()
        self.warm_up.start()
        self.sign_of_life.start()
        gc.freeze()  # what was imported and unpickled stays: no collection looks at it again
        gc.set_threshold(GARBAGE_MIN)
        sys.setswitchinterval(SWITCH_S)
        try:
            self._live()
        except OperatorFailed as failed:
            # The driver reports it; raised again here, it would only add a traceback of Spark's.
            if not self._say_why(failed):
                raise
        except Exception as error:
            self._say_why(error)
            raise
        finally:
            self._close()

    def _live(self) -> None:
        self._beat(0)
        while not self.leaving:
            self.loop.poll(0 if self._work() else None)
            if time.monotonic() > self.lease_until_s:
                self.loop.poll(0)  # after a long restore the lease may wait in the socket
                self.leaving |= time.monotonic() > self.lease_until_s
        self._publish_at_once()
        self._pulse(last=True)
        self.loop.poll(0)

    def _work(self) -> bool:
        """Take inputs that are ready; True if it is time to look at sockets, and there may be more."""
        if (engine := self.engine) is None:
            return False
        self.has_read = False
        until_s = time.monotonic() + WORK_S
        for _ in range(STEPS_PER_POLL):
            if not engine.step():
                return False
            if time.monotonic() > until_s:
                return True
            if self.has_read and self.loop.unflushed and engine.inputs.waiting:
                return True  # what goes to other slots leaves first, and what came from them is taken along
        return True

    def _say_why(self, error: Exception) -> bool:
        """Tell the driver what ends this process, and write it down; False if nobody has heard it."""
        if self.engine is None or self.boss.closed:
            return False
        engine, self.engine = self.engine, None
        self.boss.send(self.wire.pack(last_word(error, engine.epoch)))
        engine.epoch = -1  # so that it ignores all answers that still come
        with contextlib.suppress(OSError):  # the disk may be full
            story = "".join(traceback.format_exception(error))
            self.directory.write_error(engine.slot, engine.incarnation, story)
        self.boss.finish(LAST_WORDS_S)
        while not self.boss.closed:
            with contextlib.suppress(Exception):  # errors do not matter any more
                self.loop.poll(LAST_WORDS_S)
        return True

    def _connections(self) -> Iterator[tuple[Connection, Who]]:
        """All connections, and who is at the other end; None is the driver."""
        yield self.boss, None
        yield from ((link, life) for life, link in self.links.items())
        yield from self.visitors.lives.items()

    def _close(self) -> None:
        self.sign_of_life.stop()
        for connection, _ in tuple(self._connections()):
            connection.close()
        if self.listener is not None:
            self.listener.close()
        self.background.close()
        if self.journal_file is not None:
            self.journal_file.close()
        for task in self.engine.tasks.values() if self.engine is not None else ():
            task.log.close()

    def _beat(self, seq: int) -> None:
        self.boss.send(self.wire.pack(control_messages.Heartbeat(seq)))
        self._pulse()
        if self.journal_file is not None:
            self.journal_file.flush()
        self._publish_at_once()
        self.warm_up.look()
        linger_ms = self.linger.look(time.monotonic(), self.loop.rested_s)
        if self.engine is not None:
            self.engine.linger_ms = linger_ms  # longer, if it has hardly rested since the last beat
        self.loop.after(self.spec.heartbeat_s, lambda: self._beat(seq + 1))

    def _pulse(self, *, last: bool = False) -> None:
        """Report to the driver what was done since the last pulse."""
        if self.engine is not None:
            said = self.meter.pulse(self.engine, self.now_ms(), self.loop.rests, last=last)
            self.boss.send(self.wire.pack(said))

    def _publish_at_once(self) -> None:
        """Flush output that no line ever commits: it is public as it is written."""
        if self.engine is not None and self.spec.job.protocol.publishes_at_once:
            for task in self.engine.tasks.values():
                if task.egress is not None:
                    task.egress.flush()

    # What the driver says.

    def obey(self, message: control_messages.ControlMessage) -> None:
        """Do what the driver says."""
        match message:
            case control_messages.Assign(slot, incarnation):
                self.engine = Slot(slot, incarnation, self.spec.job, self)
                path = self.directory.path / "journal" / f"slot-{slot}.{incarnation}.jsonl"
                self.journal_file = JournalFile(path, self.spec.journal_bytes)
            case control_messages.BecomeSpare():
                pass
            case control_messages.Leave():
                self.leaving = True
            case control_messages.Lease():
                self.lease_until_s = time.monotonic() + self.spec.lease_s
            case control_messages.Peers(lives):
                self.peers = lives
                self._forget_links()
            case control_messages.Begin(origin_ms):
                self.origin_s = origin_ms / 1000
            case control_messages.Slow(delay_ms, for_ms):
                self.weather.delay(delay_ms / 1000, for_ms / 1000)
            case control_messages.CutLink(lives, coordinator, for_ms, patience_ms):
                cut: list[Who] = [*lives.items(), *([None] if coordinator else [])]
                self.weather.cut(cut, for_ms / 1000, patience_ms / 1000)
            case _:
                if self.engine is None:
                    raise WireError(f"nobody was given {message}")
                self.engine.order(message)  # type: ignore[arg-type]

    # The shell: time, chance, journal.

    def now_ms(self) -> Millis:
        """Milliseconds since input began to be due."""
        return int((time.time() - self.origin_s) * 1000)

    def now_us(self) -> Micros:
        """Microseconds since input began to be due, for the journal."""
        return int((time.time() - self.origin_s) * 1_000_000)

    def set_alarm(self, alarm: Alarm, delay_ms: Millis) -> None:
        """Call the engine when that millisecond begins, so that it finds what is due then."""
        engine, due_ms = self._engine, self.now_ms() + delay_ms

        def ring() -> None:
            self.meter.clock.due_us = 1000 * due_ms
            engine.alarm(alarm)

        self.loop.after(self.origin_s + due_ms / 1000 - time.time(), ring)

    @property
    def asker(self) -> Slot:
        """The slot that this process has become: storage answers it."""
        return self._engine

    @property
    def _engine(self) -> Slot:
        assert self.engine is not None
        return self.engine

    def rng(self, name: str) -> random.Random:
        """Random numbers that depend on the name alone."""
        return random.Random(name)

    def journal(self, entry: Entry) -> None:
        """Write an entry into the journal."""
        assert self.journal_file is not None
        self.journal_file.add(entry)
        self.meter.clock.see(entry)

    def note(self, actor: str, epoch: Epoch, what: Happening) -> None:
        """Write down what happened to an actor."""
        self.journal(Happened(self.now_us(), actor, epoch, what))

    def performing(self, act: TaskEffect | Message) -> None:
        """Note when a snapshot begins."""
        if isinstance(act, Snapshot):
            self.meter.clock.taking(self.now_us())

    def worked(self, records: int) -> None:
        """Count an input that was taken: real work takes its time by itself."""
        self.meter.stepped()

    def ingested(self, records: int) -> None:
        """Count records that a source read."""
        self.has_read = True
        self.meter.ingested(records, self.now_us())

    def sent(self, message: Message, *, logged: int) -> None:
        """Count a message that a task sent."""
        self.meter.sent(message, logged=logged)

    def wrote(self, batch: Batch) -> None:
        """Count records that a sink wrote."""
        self.meter.wrote(batch, self.now_us())

    def marked(self, channels: int) -> None:
        """Count markers that a task sent."""
        self.meter.marked(channels)

    def captured(self, task: TaskId, checkpoint: CheckpointNo) -> None:
        """Note when a task has captured its state."""
        self.meter.clock.captured(task, checkpoint, self.now_us())

    def choose(self, count: int) -> int:
        """Pick the ready inputs in turn."""
        self.turn += 1
        return self.turn % count

    # The shell: sockets.

    def transmit(self, slot: SlotId, frame: control.Frame) -> None:
        """Send to the life that the frame is meant for, if it is known."""
        if link := self._link(slot, frame.life[2]):
            packet = self.wire.pack(frame)
            self.meter.transmitted(packet.size)
            link.send(packet, frame)

    def overtake(self, slot: SlotId, frame: control.Frame) -> Sequence[Message]:
        """Send a marker ahead of what has not left on its channel; return the messages passed."""
        link = self._link(slot, frame.life[2])
        if link is None:
            return []
        self.meter.transmitted((packet := self.wire.pack(frame)).size)
        passed = link.overtake(
            lambda other: (
                other is not None
                and other.channel == frame.channel
                and not isinstance(other.payload, control.Credit)
            ),
            packet,
            frame,
        )
        return [other.payload for other in passed if isinstance(other.payload, Message)]

    def _link(self, slot: SlotId, incarnation: Incarnation) -> Connection | None:
        link = self.links.get((slot, incarnation))
        if link is None:
            peer = self.peers.get(slot)
            if peer is None or peer.incarnation != incarnation:
                return None
            visit = FromPeers(self)
            there, answer_s = (peer.host, peer.port), self.patience_s
            link = dial(self.loop, there, self.secret, visit, answer_s=answer_s)
            visit.lives[link] = (slot, incarnation)
            me = self._engine
            link.send(self.wire.pack(control_messages.PeerHello(me.slot, me.incarnation)))
            self.links[slot, incarnation] = link
            self.weather.met(link, (slot, incarnation))
        return link

    def _forget_links(self) -> None:
        """Forget the broken links to lives that are over."""
        now = {(slot, peer.incarnation) for slot, peer in self.peers.items()}
        links = self.links.items()
        self.links = {life: link for life, link in links if life in now or not link.closed}

    def lost_link(self, slot: SlotId, incarnation: Incarnation) -> None:
        """Report a broken link to a peer; the driver decides whether the peer died."""
        if self.engine is not None and self.engine.peers.get(slot) == incarnation:
            self.boss.send(self.wire.pack(control_messages.LinkLost(slot, incarnation)))

    def report(self, report: control.Report) -> None:
        """Send a report to the driver."""
        if isinstance(report, control.Stored):
            report = replace(report, moments=self.meter.stored(report.meta, self.now_us()))
        self.boss.send(self.wire.pack(report))
