"""The coordinator as a real process: the driver's loop, behind the engine's `Coordinator`.

The driver puts its parts together, runs the loop, and is the shell of the coordinator: it does what
the coordinator asks for. What comes from processes goes to the receiver; the roster knows who is
there, the launches who is missing; the killer ends processes. Faults reach a run through the fault
port, and no other way.
"""

import random
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from typing import Final
from uuid import uuid4

from snapline.engine import control
from snapline.engine.coordinator.coordinator import Coordinator
from snapline.engine.job import Job
from snapline.engine.shell import Alarm, Ticket
from snapline.errors import OperatorFailed
from snapline.ids import Epoch, Incarnation, Micros, Millis, SlotId, TaskId
from snapline.journal import fault_happenings as faults
from snapline.journal import happenings
from snapline.journal.entry import COORDINATOR, Entry, Happened
from snapline.metrics.figures import is_line
from snapline.net.handshake import new_secret
from snapline.net.listener import LOOPBACK, Listener
from snapline.net.loop import EventLoop
from snapline.rundir.directory import RunDirectory
from snapline.rundir.journal_file import Detail, JournalFile
from snapline.rundir.tidying import tidy
from snapline.runtime.driver.decisions import Decisions
from snapline.runtime.driver.fault_port import FaultPort
from snapline.runtime.driver.killer import Killer
from snapline.runtime.driver.launches import Launches
from snapline.runtime.driver.receiver import SlotReceiver
from snapline.runtime.driver.restart import GivenUp, RestartStrategy
from snapline.runtime.driver.roster import Roster, Timeouts
from snapline.runtime.driver.tenure import Tenure
from snapline.runtime.driver.timeline import Timeline
from snapline.runtime.launch.launcher import Launcher
from snapline.runtime.resources import Resources
from snapline.runtime.slot.process import SlotSpec
from snapline.runtime.wire import control_messages
from snapline.runtime.wire.codec import Wire
from snapline.storage.api import Extent, Storage

__all__ = ["Driver", "Timeouts"]

INTERRUPTED: Final = "interrupted"
"""The problem of a run that was ended at once: it is not over, and a resume goes on at its last line."""


class Driver:
    """Runs one job to its end.

    `listen` is the address at which slots reach this process; they have to know the run's secret. Of a run
    without an end, `journal_bytes` bounds its journals, and output that is never published is deleted, too:
    both serve only to be looked at.
    """

    def __init__(
        self,
        job: Job,
        directory: RunDirectory,
        launcher: Launcher,
        *,
        spares: int = 0,
        origin_s: float | None = None,
        timeouts: Timeouts | None = None,
        journal: Detail = "brief",
        listen: str = LOOPBACK,
        timeline: Timeline | None = None,
        journal_bytes: int | None = None,
        on_event: Callable[[Happened], None] = lambda happened: None,
    ) -> None:
        self.tenure = Tenure(directory, job)  # BEFORE all else: it raises if the run cannot go on
        self.job = self.tenure.job
        self.directory = directory
        self.launcher = launcher
        self.resumed = origin_s is not None  #: whether input is due already
        self.begun = False  #: whether all slots have run
        self.origin_s = time.time() if origin_s is None else origin_s
        self.timeouts = timeouts or Timeouts()
        self.detail: Detail = journal
        self.on_event = on_event
        self.timeline = timeline or Timeline()
        self.timeline.attach(self)
        self.on_begin: Callable[[float], None] = lambda origin_s: None  #: told when slots first run
        self.watch: Callable[[Entry], None] = lambda entry: None  #: is given every journal entry
        self.loop = EventLoop()
        self.wire = Wire.of(job)
        self.secret = new_secret()
        self.roster = Roster(len(job.slots), spares)
        self.finished = False
        self.problem: str | None = None
        self.raised: OperatorFailed | None = None  #: what the dataflow's code raised, if it did
        self.strategy = RestartStrategy(
            self.timeouts.restarts, lines=not job.protocol.publishes_at_once
        )
        self.launches = Launches(self, launcher, self.timeouts, self.loop.after)
        self.killer = Killer(self, self.roster, launcher)
        self.receiver = SlotReceiver(
            self,
            self.roster,
            self.launches,
            self.killer,
            self.loop.after,
            self.wire,
            self.timeouts,
            self.timeline.pulse,
        )
        self.listener = Listener(self.loop, self.secret, self.receiver, host=listen)
        self.storage: Storage = directory.storage
        post, give_up = self.loop.post, lambda error: self.finish(self.tenure.give_up(error))
        self.decisions = Decisions(self.storage, post, self._complain, give_up)
        self.resources = Resources(self.decisions.store)
        self.told_bytes = 0  #: of what was said to slots, as far as the timeline knows
        self.journal_bytes = journal_bytes
        self.journal_file = JournalFile(
            directory.path / "journal" / f"driver-{uuid4().hex[:8]}.jsonl",
            None if journal_bytes is None else journal_bytes // 2,
        )
        self.fault_port = FaultPort(self, self.killer, self.loop, self.wire, self.timeouts)
        self.engine = Coordinator(self.job, self, self.tenure.author, self.tenure.past)

    def run(self) -> str | None:
        """Run the job; return what ended it early, if anything. Raises RunDamaged, Deposed."""
        beat_s, lease_s = self.timeouts.heartbeat_s, self.timeouts.lease_s
        here, path = self.listener.address, str(self.directory.path)
        shared = 4 * len(self.job.slots)  # a quarter is for slots that run, and one for the dead
        most = None if self.journal_bytes is None else self.journal_bytes // shared
        patience_s = self.timeouts.computing_s
        spec = SlotSpec(here, path, self.job, beat_s, lease_s, patience_s, self.detail, most)
        ended, leaving, post = self.launches.ended, self.receiver.leaving, self.loop.post
        self.launcher.start(
            spec,
            self.secret,
            lambda *end: post(lambda: ended(*end)),
            lambda tags: post(lambda: leaving(tags)),
        )
        self.tenure.begin()
        if self.resumed:
            self.note(COORDINATOR, self.engine.epoch, faults.CoordinatorResumed())
        try:
            self.engine.start()
            self._beat(0, time.monotonic())
            while not self.finished:
                self.loop.poll(None)
        finally:
            self._close()
        self.tenure.check()
        return self.problem

    def stop(self) -> None:
        """End the run with a last line, which holds all that was taken in; a resume goes on from it.

        If it takes too long, and before slots have run, it ends as `interrupt` does.
        """
        if not self.begun or self.finished:
            self.interrupt()
            return
        self.note(COORDINATOR, self.engine.epoch, happenings.JobStopping())
        self.engine.stop()
        self.loop.after(self.timeouts.stop_s, self.interrupt)

    def interrupt(self) -> None:
        """End the run in good order before its job is done; a resume goes on at its last line."""
        if self.finished:
            return
        self.note(COORDINATOR, self.engine.epoch, happenings.JobInterrupted())
        self.finish(INTERRUPTED)

    def abort(self, problem: str) -> None:
        """End the run in good order, because something outside of its job has failed; it can be resumed."""
        self.note(COORDINATOR, self.engine.epoch, happenings.JobStopped(problem))
        self.finish(problem)

    def _close(self) -> None:
        """End everything, even if something fails meanwhile: a watcher may raise here, too."""
        self.finished = True  # from now on no process that ends is replaced
        with ExitStack() as closing:  # which calls the last one first
            closing.callback(self.loop.close)
            closing.callback(self.journal_file.close)
            closing.callback(self.decisions.close)
            closing.callback(self.launcher.stop)
            closing.callback(self.timeline.close)
            closing.callback(lambda: self._tell_costs(last=True))
            closing.callback(self._close_connections)
            self._send_all_away()

    def _send_all_away(self) -> None:
        self.tenure.end(self.engine.decider.number)
        for member in tuple(self.roster.members.values()):
            self.receiver.send_away(member)
        deadline_s = time.monotonic() + 5
        while self.roster.members and time.monotonic() < deadline_s:
            self.loop.poll(0.05)

    def _close_connections(self) -> None:
        self.listener.close()
        self.roster.close()

    def _beat(self, seq: int, due_s: float) -> None:
        now_s = time.monotonic()
        self.receiver.beat(seq, now_s, stalled=now_s - due_s > self.timeouts.silence_s / 2)
        self.timeline.tick()
        self._tell_costs()
        self.flush()
        self.tenure.beat()
        beat_s = self.timeouts.heartbeat_s
        self.loop.after(beat_s, lambda: self._beat(seq + 1, now_s + beat_s))

    def _tell_costs(self, *, last: bool = False) -> None:
        """Let the timeline know what this process has said and used itself."""
        before, self.told_bytes = self.told_bytes, self.wire.control_bytes
        self.timeline.spent(self.told_bytes - before, self.resources.since((), last=last))

    @property
    def next_epoch(self) -> Epoch:
        """The epoch in which a process that is launched now will take part."""
        return self.engine.epoch_asked

    # The shell.

    def now_ms(self) -> Millis:
        """Milliseconds since input began to be due."""
        return int((time.time() - self.origin_s) * 1000)

    def now_us(self) -> Micros:
        """Microseconds since input began to be due, for the journal."""
        return int((time.time() - self.origin_s) * 1_000_000)

    def set_alarm(self, alarm: Alarm, delay_ms: Millis) -> None:
        """Call the engine later."""
        self.loop.after(delay_ms / 1000, lambda: self.engine.alarm(alarm))

    def rng(self, name: str) -> random.Random:
        """Random numbers that depend on the name alone."""
        return random.Random(name)

    def journal(self, entry: Entry) -> None:
        """Write an entry into the journal, and show it to the timeline and to `watch`."""
        self.journal_file.add(entry)
        self.timeline.see(entry)
        self.watch(entry)

    def flush(self) -> None:
        """Write the journal to disk, as far as the disk takes it."""
        self.journal_file.flush()

    def note(self, actor: str, epoch: Epoch, what: happenings.Happening) -> None:
        """Write down what happened to an actor, and call `on_event`."""
        happened = Happened(self.now_us(), actor, epoch, what)
        if is_line(happened):
            self.strategy.progress()
        self.journal(happened)
        self.on_event(happened)

    def send(self, slot: SlotId, incarnation: Incarnation, order: control.Order) -> None:
        """Give an order to a life of a slot, if it is there."""
        member = self.roster.of((slot, incarnation))
        if member is None:
            return
        said: list[control_messages.ControlMessage] = [order]
        if isinstance(order, control.Restore):
            member.restoring, member.running = True, False
            self.strategy.stands(time.monotonic())
            if self.begun or self.resumed:
                # Who restores in the middle of a run has to know when input began to be due.
                said.insert(0, self._origin())
        elif isinstance(order, control.Replaced):
            said.insert(0, self.roster.peers())
        elif isinstance(order, control.Go):
            said = [self.roster.peers(), self._begin(), order]
            member.running = True
            if self.roster.running:
                self.strategy.runs(time.monotonic())
        for message in said:
            member.connection.send(self.wire.pack(message))

    def _begin(self) -> control_messages.Begin:
        """Fix, when slots first run, the moment from which input is due; return it as a control message."""
        if not self.begun:
            self.begun = True
            if not self.resumed:
                # A whole number of milliseconds, so that all processes count from the same moment.
                self.origin_s = self.directory.agreed_origin(int(time.time() * 1000) / 1000)
            self.on_begin(self.origin_s)
            self.loop.post(self.launches.fill)  # spares; slots were launched with the first epoch
        return self._origin()

    def _origin(self) -> control_messages.Begin:
        return control_messages.Begin(round(self.origin_s * 1000))

    def launch(self, slot: SlotId, incarnation: Incarnation) -> None:
        """Find a process for a life of a slot: a spare, or a new one."""
        self.roster.unmanned.append((slot, incarnation))
        self._find_process()

    def let_back(self, slot: SlotId) -> None:
        """Let a slot that was kept away have a process again."""
        if self.roster.let_back(slot) and not self.finished:
            self._find_process()

    def _find_process(self) -> None:
        wanted, spares = self.roster.wanted, self.roster.idle()
        if wanted and len(wanted) <= len(spares):
            spare = spares[len(wanted) - 1]
            self.loop.post(lambda: self.receiver.assign_spare(spare))
            self.launches.spare_used()
        self.launches.fill()

    def dismiss(self, slot: SlotId, incarnation: Incarnation) -> None:
        """Let the process of a life end, if it is there."""
        if member := self.roster.of((slot, incarnation)):
            self.receiver.dismiss(member)

    def tell(self, reason: str) -> None:
        """Write down that a process did not start, and why."""
        self.note(COORDINATOR, self.engine.epoch, happenings.ProcessNotStarted(reason))

    def give_up(self, end: GivenUp) -> None:
        """End the run: the restart strategy starts no process any more."""
        self.raised = end.raised
        problem = "the dataflow itself fails" if end.raised else end.story
        self.note(COORDINATOR, self.engine.epoch, happenings.JobStopped(problem))
        self.finish(end.story)

    def decide(self, ticket: Ticket, key: str, data: bytes) -> None:
        """Store a decision in the background, unless its number is taken."""
        self.decisions.decide(self.engine, ticket, data)

    def compact(self, through: int) -> None:
        """Let old manifests be kept in few files, in the background."""
        self.decisions.compact(through)

    def publish(self, ticket: Ticket, number: int, extents: Mapping[TaskId, Extent]) -> None:
        """Publish a manifest in the background."""
        rows = {task: (extent.start, extent.stop) for task, extent in extents.items()}

        def published() -> None:
            self.note(COORDINATOR, self.engine.epoch, happenings.OutputPublished(number, rows))

        self.decisions.publish(self.engine, ticket, number, extents, published)

    def delete(self, key: str) -> None:
        """Delete an object in the background."""
        self.decisions.delete(key)

    def sweep(
        self, before: Epoch, snapshots: Collection[str], files: Collection[str] | None
    ) -> None:
        """Delete in the background what past epochs left."""
        most = self.journal_bytes
        self.decisions.sweep(before, snapshots, files, written=most is not None)
        if most is not None:
            lives = {f"slot-{s}.{i}" for s, i in self.engine.members.incarnations.items()}
            self.decisions.tidy(lambda: tidy(self.directory, lives, most // 4))

    def _complain(self, story: str) -> None:
        self.note(COORDINATOR, self.engine.epoch, happenings.StoreAwaited(story))

    def finish(self, problem: str | None) -> None:
        """End the run; `problem` says why, if it ended early."""
        self.finished = True
        self.problem = problem

    def deposed(self) -> None:
        """End this driver, because another one has taken the run over."""
        self.finish(self.tenure.deposed())
