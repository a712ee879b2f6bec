"""The processes that have registered with the driver, and how patient it is with them."""

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Final

from snapline.errors import ObjectDamaged, ObjectMissing, OperatorFailed
from snapline.ids import Incarnation, SlotId
from snapline.net.connection import Connection
from snapline.runtime.driver.restart import ProcessFailure, RestartPolicy
from snapline.runtime.wire.control_messages import Failed, Hello, Peer, Peers
from snapline.wording import plural

DEFINITE: Final = {ObjectDamaged.__name__, ObjectMissing.__name__}
"""The errors after which reading the same again gives the same."""


@dataclass(slots=True)
class Timeouts:
    """How patient the driver is with its processes; seconds, mostly."""

    heartbeat_s: float = 0.2
    silence_s: float = 2.0
    lease_s: float = 5.0
    register_s: float = 60.0
    link_s: float = 0.5  # until a slot that another has lost is given up, if it lives
    computing_s: float = 120.0  # for how long a slot may compute without looking at its connections
    restore_s: float = 15.0  # while a slot loads its state it may be silent for longer
    successor_s: float = (
        10.0  # for how long a slot that is to leave works on until one has registered
    )
    stop_s: float = 60.0  # until a run that waits for its last line is ended without it
    restarts: RestartPolicy = field(default_factory=RestartPolicy)


@dataclass(slots=True, eq=False)
class Member:
    """A process that has registered."""

    connection: Connection
    hello: Hello
    heard_s: float
    tag: str  # names the launch from which it came
    started_s: float  # when it was launched
    life: tuple[SlotId, Incarnation] | None = None  # None: a spare
    restoring: bool = False  # it was told to restore, and has not said that it is done
    running: bool = False  # it was told to process input
    computing: bool = False  # what it said last is that it computes
    struck: bool = False  # a fault was done to it
    last_words: Failed | None = None

    def __str__(self) -> str:
        """Which process it is, and where."""
        return f"process {self.hello.pid} ({self.tag}) at {self.hello.host}:{self.hello.port}"

    def silent(self, now_s: float, timeouts: Timeouts) -> bool:
        """Whether nothing was heard of it for too long."""
        patience_s = timeouts.restore_s if self.restoring else timeouts.silence_s
        return now_s - self.heard_s > patience_s

    def why_silent(self, timeouts: Timeouts) -> str:
        """What its silence means."""
        if not self.computing:
            return "a slot was silent for too long"
        return (
            f"an operator has not come back from one call for {timeouts.computing_s:g} s, so its slot was "
            "given up: mend it, or give it less at once (option batch=100)"
        )

    def failure(self, reason: str, *, silent: bool = False) -> ProcessFailure:
        """What its end means to the restart strategy; it may have said itself why."""
        if self.last_words is None:
            stuck = silent and self.computing and not self.struck
            return ProcessFailure(self.tag, reason, self.started_s, self.struck, stuck=stuck)
        return failure_of(self.last_words, self.tag, self.started_s, planned=self.struck)


def failure_of(message: Failed, tag: str, started_s: float, *, planned: bool) -> ProcessFailure:
    """What the end of this slot means to the restart strategy."""
    told = OperatorFailed(message.operator, message.kind, message.text, message.code, message.where)
    raised = told if message.operator else None
    reason = str(told) if message.operator else f"a slot ended with {told.cause}"
    damage = not message.operator and message.kind in DEFINITE
    return ProcessFailure(tag, reason, started_s, planned, message.epoch, raised, damage)


class Roster:
    """Who has registered, and which lives have no process."""

    def __init__(self, slots: int, spares: int) -> None:
        self.slots = slots
        self.spares = spares
        self.members: dict[Connection, Member] = {}
        self.unknown: dict[Connection, None] = {}  #: open, but nobody has introduced himself yet
        self.unmanned: deque[tuple[SlotId, Incarnation]] = deque()  #: lives without a process
        self.away: Counter[SlotId] = Counter()  #: how many faults keep a slot away
        #: lives that are to end where they run: for each there is one more spare
        self.leaving: dict[tuple[SlotId, Incarnation], None] = {}

    def close(self) -> None:
        """Close all connections, also those of processes that have not come to say who they are."""
        for connection in (*self.members, *self.unknown):
            connection.close()

    @property
    def wanted(self) -> list[tuple[SlotId, Incarnation]]:
        """The lives that need a process now; whoever has waited longest comes first."""
        return [life for life in self.unmanned if not self.away[life[0]]]

    def let_back(self, slot: SlotId) -> bool:
        """Note that a fault keeps a slot away no more; returns whether no other one does."""
        self.away[slot] -= 1
        return not self.away[slot]

    def idle(self) -> list[Member]:
        """The processes that have registered and are no slot yet: the spares."""
        return [member for member in self.members.values() if member.life is None]

    def vacant(self) -> tuple[int, int]:
        """How many lives have no process, and how many spares are missing."""
        idle, lives, spares = len(self.idle()), len(self.wanted), self.spares + len(self.leaving)
        return max(0, lives - idle), max(0, spares - max(0, idle - lives))

    def without_process(self) -> list[SlotId]:
        """The slots for which nobody is here; spares take those that have waited longest."""
        return [slot for slot, _ in self.wanted][len(self.idle()) :]

    def take(self, meant: SlotId | None) -> tuple[SlotId, Incarnation]:
        """Give away a life without a process: that of this slot, or the one that has waited longest."""
        wanted = self.wanted
        life = next((life for life in wanted if life[0] == meant), wanted[0])
        self.unmanned.remove(life)
        return life

    def superfluous(self, member: Member) -> bool:
        """Whether a process that has come can be sent away.

        A speculative copy that Spark has made of a living process cannot: when one of the two
        returns, Spark ends the other.
        """
        same = sum(other.tag == member.tag for other in self.members.values())
        return len(self.members) > self.slots + self.spares + len(self.leaving) and same == 1

    @property
    def running(self) -> bool:
        """Whether all slots run."""
        return sum(member.running for member in self.members.values()) == self.slots

    def of(self, life: tuple[SlotId, Incarnation]) -> Member | None:
        """The process of a life, if it is there."""
        return next((member for member in self.members.values() if member.life == life), None)

    def peers(self) -> Peers:
        """The addresses of all slots that have a process."""
        return Peers(
            {
                member.life[0]: Peer(member.life[1], member.hello.host, member.hello.port)
                for member in self.members.values()
                if member.life is not None
            }
        )

    def __str__(self) -> str:
        """How many slots have started."""
        return f"only {self.slots - len(self.unmanned)} of {plural(self.slots, 'slot')}"
