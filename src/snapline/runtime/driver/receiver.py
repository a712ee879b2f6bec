"""Takes what comes from the processes of a run, and makes them lives of slots.

A process introduces itself and is made a life of a slot, or a spare. It says by heartbeats that it lives. A
connection that breaks is a slot lost at once; a silent one is given up, and its job cancelled. So is one
that lives, but has lost its connection with another: what was on its way between them is gone.
"""

import time
from collections.abc import Callable, Collection
from functools import partial
from logging import getLogger

from snapline.engine import control
from snapline.ids import Incarnation, SlotId
from snapline.journal.entry import COORDINATOR
from snapline.journal.happenings import OperatorRaised, SlotCutOff, SlotLeaving
from snapline.net.connection import Connection
from snapline.net.framing import Body, WireError
from snapline.runtime.driver.control import RunControl
from snapline.runtime.driver.killer import Killer
from snapline.runtime.driver.launches import Launches
from snapline.runtime.driver.roster import Member, Roster, Timeouts
from snapline.runtime.wire import control_messages
from snapline.runtime.wire.codec import Wire

_LOG = getLogger(__name__)


class SlotReceiver:
    """The receiver of all connections of a driver."""

    def __init__(
        self,
        run: RunControl,
        roster: Roster,
        launches: Launches,
        killer: Killer,
        after: Callable[[float, Callable[[], None]], None],
        wire: Wire,
        timeouts: Timeouts,
        pulse: Callable[[SlotId, control_messages.Pulse], None],
    ) -> None:
        self._run = run
        self._roster = roster
        self._launches = launches
        self._killer = killer
        self._after = after  #: calls a function after a number of seconds
        self._wire = wire
        self._timeouts = timeouts
        self._pulse = pulse  #: takes what a slot says of its work

    # Connections.

    def opened(self, connection: Connection) -> None:
        """Wait for the process to introduce itself."""
        self._roster.unknown[connection] = None

    def received(self, connection: Connection, kind: int, body: Body) -> None:
        """Take what a process says."""
        message = self._wire.unpack(kind, body)
        member = self._roster.members.get(connection)
        if isinstance(message, control_messages.Hello):
            launch = self._launches.registered(message.role)
            self._meet(Member(connection, message, time.monotonic(), *launch))
            return
        if member is None:
            if isinstance(message, control_messages.Heartbeat | control_messages.Computing):
                return  # sent before it could introduce itself
            raise WireError("a process must introduce itself first")
        member.heard_s = time.monotonic()
        member.computing = isinstance(message, control_messages.Computing)
        if isinstance(message, control_messages.LinkLost):
            life = (message.slot, message.incarnation)
            self._after(self._timeouts.link_s, lambda: self._cut_off(member, life))
        elif isinstance(message, control_messages.Failed):
            self._fails(member, message)
        elif isinstance(message, control_messages.Pulse):
            if member.life is not None:
                self._pulse(member.life[0], message)
        elif isinstance(message, control_messages.Heartbeat | control_messages.Computing):
            pass  # that it was heard is all
        elif member.life is not None:
            if isinstance(message, control.Restored):
                member.restoring = False
            self._run.engine.report(*member.life, message)  # type: ignore[arg-type]

    def lost(self, connection: Connection, reason: str) -> None:
        """Give up a process whose connection has broken."""
        self._roster.unknown.pop(connection, None)
        if member := self._roster.members.get(connection):
            self._gone(member, f"a slot is gone: {reason}")

    def _fails(self, member: Member, message: control_messages.Failed) -> None:
        member.last_words = message  # kept until its connection breaks
        if not self._run.finished:
            raised = OperatorRaised(message.kind, message.operator)
            self._run.note(f"process/{member.hello.pid}", message.epoch, raised)

    # Processes come.

    def _meet(self, member: Member) -> None:
        self._roster.unknown.pop(member.connection, None)
        self._roster.members[member.connection] = member
        if self._roster.wanted and not self._run.finished:
            self._assign(member)
        elif self._run.finished or self._roster.superfluous(member):
            self.send_away(member)  # it comes too late: another has taken its place
        else:
            _LOG.info("%s has registered as a spare", member)
            self._send(member, control_messages.BecomeSpare())
            self._let_leave()

    def assign_spare(self, member: Member) -> None:
        """Make a spare a life of a slot, if it is still there and a life still has no process."""
        here = member.connection in self._roster.members
        if self._roster.wanted and here and member.life is None:
            self._assign(member)

    def _assign(self, member: Member) -> None:
        member.life = self._roster.take(self._launches.meant(member.tag))
        _LOG.info("%s is slot %d from now on, incarnation %d", member, *member.life)
        self._send(member, control_messages.Assign(*member.life))
        self._run.engine.registered_slot(*member.life)

    # Processes go.

    def send_away(self, member: Member) -> None:
        """Tell a process that nobody needs it."""
        self._send(member, control_messages.Leave("nobody needs you"))

    def leaving(self, tags: Collection[str]) -> None:
        """Let the processes of these launches go: where they run, nothing may run for much longer.

        A spare goes at once. Of a slot a successor is launched, as one more spare. Once that has
        registered, or after a while without it, a line is taken, and then the slot goes: see
        `engine.coordinator.holding`.
        """
        if self._run.finished:
            return
        there = [member for member in self._roster.members.values() if member.tag in tags]
        for spare in (member for member in there if member.life is None):
            self.dismiss(spare)
            self._launches.spare_used(0)
        new = {member.life: None for member in there if member.life} - self._roster.leaving.keys()
        for slot, incarnation in sorted(new):
            self._roster.leaving[slot, incarnation] = None
            self._run.note(COORDINATOR, self._run.engine.epoch, SlotLeaving(slot, incarnation))
            leave = partial(self._run.engine.leave, slot, incarnation)
            self._after(self._timeouts.successor_s, leave)
        self._launches.fill()
        self._let_leave()

    def _let_leave(self) -> None:
        """Let slots leave that are to, as many of them as have a successor."""
        for life in tuple(self._roster.leaving)[: len(self._roster.idle())]:
            self._run.engine.leave(*life)

    def dismiss(self, member: Member) -> None:
        """Let a process end that is not needed any more, while the run goes on: that is no failure."""
        self.send_away(member)
        member.connection.finish(self._timeouts.silence_s)
        self._after(self._timeouts.silence_s, lambda: self._killer.cancel(member))
        self._forget(member)

    def _forget(self, member: Member) -> None:
        self._roster.members.pop(member.connection, None)
        if member.life is not None:
            self._roster.leaving.pop(member.life, None)

    def beat(self, seq: int, now_s: float, *, stalled: bool) -> None:
        """Renew all leases, and give up whoever was silent for too long.

        After a stall of our own, heartbeats that wait in the sockets must not count as silence.
        """
        for member in tuple(self._roster.members.values()):
            self._send(member, control_messages.Lease(seq))
            if stalled:
                member.heard_s = now_s
            elif member.silent(now_s, self._timeouts):
                self._killer.cancel(member)
                self._gone(member, member.why_silent(self._timeouts), silent=True)

    def _gone(self, member: Member, reason: str, *, silent: bool = False) -> None:
        self._forget(member)
        member.connection.close()
        if self._run.finished:
            return
        if member.life is None:
            self._launches.spare_used()
            return
        # BEFORE the engine asks for the next process: this decides when that may start.
        self._launches.failed(member.failure(reason, silent=silent))
        if not self._run.finished:
            self._run.engine.lost(*member.life)

    def _cut_off(self, witness: Member, life: tuple[SlotId, Incarnation]) -> None:
        """Give up a slot that another has lost its link with; whoever complained first stays."""
        if witness.connection not in self._roster.members or self._run.finished:
            return
        if member := self._roster.of(life):
            cut_off = SlotCutOff(life[1], witness.life)
            self._run.note(f"slot/{life[0]}", self._run.engine.epoch, cut_off)
            self._killer.cancel(member)
            self._gone(member, "a slot has lost its connection with another")

    def _send(self, member: Member, message: control_messages.ControlMessage) -> None:
        member.connection.send(self._wire.pack(message))
