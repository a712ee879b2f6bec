"""Communication-induced checkpoints with clock and vectors (HMNR; CheckMate III-C, the thesis 4.4).

Theory of operation.  A checkpoint is useless when a Z-cycle leads from it back to itself. `bcs` prevents
that by forcing a checkpoint at every message with a larger clock; HMNR carries more, in order to force
less. Task i knows its clock `lc` and, for every task k,
  ckpt[k]     how many checkpoints of k it knows of (the initial state counts),
  taken[k]    whether a checkpoint lies on a causal path from the last known one of k to here,
  greater[k]  whether its clock is known to be greater than that of k,
  sent_to[k]  whether it has sent to k since its own last checkpoint.
All but `sent_to` ride on every message. A message forces a checkpoint before its delivery if
  C1  it carries a larger clock, and we sent to a task whose clock is behind that of the sender: our
      message and this one could close a Z-path along which clocks do not grow; or
  C2  it comes from our own present interval and a checkpoint was taken on its way: delivered here, it
      would close a Z-cycle around that checkpoint.
Otherwise clocks grow along every Z-path, so that none can return to where it began.

Clock and vectors change with checkpoints and with news, not with every message, so most headers on a
channel repeat the one before. Such a header is compared and not read: what it says was learned, only grows
(clock, counts) or only shrinks within one clock (`greater`), and to learn it again would change nothing;
nor can it force anything: its clock is no larger than ours any more, and our own count never goes back.

A forced checkpoint restarts neither the local timer nor the count of records, as in the papers (see `bcs`).

The binary form, little-endian, over the n peers in the job's order: `lc` int64; `ckpt` n int32; `taken` and
`greater` n bytes each, 0 or 1. That is a header; a memo adds `sent_to` as n bytes. An empty memo is the
initial state.

Invariants (and those of `uncoordinated`)
  I5  a task's own `taken`, `greater` and `sent_to` stay false.
  I6  a memo is the memory behind the bookkeeping of its own checkpoint and before the message that forced
      it: a task restored from it takes the next message as it would have been taken.
"""

import struct
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from snapline.core.effects import Deliver
from snapline.core.guarantee import Guarantee
from snapline.core.messages import Message, Stamp
from snapline.core.protocol import CheckpointProtocol, TaskContext, TaskEffects
from snapline.core.topology import Channel
from snapline.ids import ChannelId
from snapline.protocols.uncoordinated import (
    UNCOORDINATED,
    UncoordinatedCoordinator,
    UncoordinatedTask,
)

Counts: TypeAlias = npt.NDArray[np.int32]
Flags: TypeAlias = npt.NDArray[np.bool_]

_CLOCK = struct.Struct("<q")


class HmnrTask(UncoordinatedTask):
    """Forces a checkpoint before a message that could make one useless."""

    def __init__(self, context: TaskContext) -> None:
        super().__init__(context)
        n = len(context.peers)
        self.index: Final = {task: k for k, task in enumerate(context.peers)}
        self.me: Final = self.index[context.task]
        self.others: Final[Flags] = np.arange(n) != self.me
        self.lc = 0
        self.ckpt: Counts = np.zeros(n, "<i4")
        self.taken: Flags = np.zeros(n, np.bool_)
        self.greater: Flags = np.zeros(n, np.bool_)
        self.sent_to: Flags = np.zeros(n, np.bool_)
        self.heard: dict[ChannelId, bytes] = {}  #: the last header of each input
        self.next: Stamp | None = None  #: of the next message; None: to be made anew
        self._note_checkpoint()  # the initial state counts as one

    def restore(self, memo: bytes) -> None:
        """Restore clock and vectors from the memo of a checkpoint."""
        if memo:
            self.lc, ckpt, flags = self._decode(memo)
            self.next = None
            self.ckpt = ckpt.copy()
            self.taken, self.greater, self.sent_to = flags.copy()

    def stamp(self, channel: Channel) -> Stamp:
        """Put clock and vectors on every message, and note to whom it goes."""
        if channel.target != self.context.task:  # I5
            self.sent_to[self.index[channel.target]] = True
        if self.next is None:
            self.next = Stamp(self._encode(), self.log)
        return self.next

    def on_message(self, message: Message) -> TaskEffects:
        """Force a checkpoint if one could become useless, then learn and deliver."""
        if message.header != self.heard.get(message.channel):
            lc, ckpt, (taken, greater) = self._decode(message.header)
            if self._forces(lc, ckpt, taken, greater):
                yield from self._take(forced=True)
            self._learn(lc, ckpt, taken, greater)
            self.heard[message.channel] = message.header
        yield Deliver(message)

    def only_delivers(self, message: Message) -> bool:
        """Whether a message can be delivered without a forced checkpoint."""
        if self.learns_nothing(message):
            return True
        lc, ckpt, (taken, greater) = self._decode(message.header)
        return not self._forces(lc, ckpt, taken, greater)

    def learns_nothing(self, message: Message) -> bool:
        """Whether a message repeats the last header of its channel."""
        return message.header == self.heard.get(message.channel)

    def _forces(self, lc: int, ckpt: Counts, taken: Flags, greater: Flags) -> bool:
        behind = lc > self.lc and bool((self.sent_to & greater).any())  # C1
        returned = bool(ckpt[self.me] == self.ckpt[self.me] and taken[self.me])  # C2
        return behind or returned

    def _take(self, *, forced: bool) -> TaskEffects:
        self._note_checkpoint()
        yield from super()._take(forced=forced)

    def _note_checkpoint(self) -> None:
        self.next = None
        self.sent_to[:] = False
        self.taken[self.others] = True
        self.greater[self.others] = True
        self.lc += 1
        self.ckpt[self.me] += 1

    def _learn(self, lc: int, ckpt: Counts, taken: Flags, greater: Flags) -> None:
        """Merge what a message carries. I5: what it says about this task is not news."""
        self.next = None
        if lc > self.lc:
            self.lc = lc
            self.greater = greater & self.others
        elif lc == self.lc:
            self.greater &= greater
        newer = (ckpt > self.ckpt) & self.others
        equal = (ckpt == self.ckpt) & self.others
        self.taken = np.where(newer, taken, self.taken | (taken & equal))
        self.ckpt = np.where(newer, ckpt, self.ckpt)

    def _memo(self) -> bytes:
        return self._encode() + self.sent_to.tobytes()  # I6: called after `_note_checkpoint`

    def _encode(self) -> bytes:
        vectors = self.ckpt.tobytes() + self.taken.tobytes() + self.greater.tobytes()
        return _CLOCK.pack(self.lc) + vectors

    def _decode(self, raw: bytes) -> tuple[int, Counts, Flags]:
        """Read a header or a memo: clock, counts, and each vector of flags as a row (all views)."""
        n = len(self.context.peers)
        (lc,) = _CLOCK.unpack_from(raw)
        ckpt = np.frombuffer(raw, "<i4", n, _CLOCK.size)
        flags = np.frombuffer(raw, np.bool_, offset=_CLOCK.size + ckpt.nbytes)
        return lc, ckpt, flags.reshape(-1, n)


HMNR = CheckpointProtocol(
    name="hmnr",
    summary="uncoordinated, and piggybacked clocks and vectors force checkpoints",
    task=HmnrTask,
    coordinator=UncoordinatedCoordinator,
    guarantees=(Guarantee.EXACTLY_ONCE, Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE),
    cycles=True,
    no_useless=True,
    reads=UNCOORDINATED.reads,
    shows=("replayed", "forced"),
)
