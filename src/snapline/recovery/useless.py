"""Which checkpoints of a whole run were useless, across its rollbacks: see `zpaths`.

A rollback takes checkpoints back, and the counters of those that follow go on from its line. So the
checkpoints before and behind a rollback are looked at apart, each time with those that the line has kept.
The channels are those that the checkpoints count, so a journal is enough.

Where no channel leads back to a task that came before, there are no Z-cycles, and nothing is remembered.
Otherwise all checkpoints are, up to a number of counters; beyond that nobody can say which are useless.
Nor can anybody behind a line with orphans, as `at-least-once` has them, because message numbers are then
used twice; and where one slot restarts alone, which leaves no line behind.
"""

from collections.abc import Collection, Mapping
from graphlib import CycleError, TopologicalSorter

from snapline.core.messages import CheckpointMeta, RecoveryLine
from snapline.core.topology import Channel, Topology
from snapline.ids import ChannelId, TaskId
from snapline.recovery.history import Node
from snapline.recovery.zpaths import useless_checkpoints

COUNTERS_MAX = 500_000
"""So many counters are remembered of checkpoints, at about a hundred bytes each."""


class UselessFinder:
    """Follows a run, and finds its useless checkpoints when it is asked."""

    def __init__(self) -> None:
        self.skipped: set[Node] = set()  #: those that a rollback took back
        self._alive: dict[Node, CheckpointMeta] = {}
        self._timelines: list[Collection[CheckpointMeta]] = []  #: as they stood at each rollback
        self._counters = 0
        self._looked = False  #: whether the channels of all tasks were looked at
        self._acyclic = False
        self._given_up = False

    def stored(self, meta: CheckpointMeta) -> None:
        """Take note of a checkpoint that counts."""
        if not self._acyclic and not self._given_up:
            self._alive[meta.task, meta.checkpoint] = meta
            self._remember(len(meta.sent) + len(meta.received))

    def committed(self, line: RecoveryLine) -> None:
        """Look at the channels, as soon as every task has a checkpoint on a line."""
        if self._looked:
            return
        metas = [self._alive.get(node) for node in line.checkpoints.items()]
        known = [meta for meta in metas if meta is not None]
        if len(known) == len(metas):
            self._looked = True
            self._acyclic = not _is_cyclic(topology_of(known))
            if self._acyclic:
                self._forget()

    def rolled_back(self, line: RecoveryLine) -> None:
        """Go on from a line, without the checkpoints beyond it."""
        if self._acyclic or self._given_up:
            return
        if _has_orphans([self._alive[n] for n in line.checkpoints.items() if n in self._alive]):
            self.give_up()
            return
        self._remember(len(self._alive))
        self._timelines.append(tuple(self._alive.values()))
        newest = line.checkpoints
        beyond = {node for node in self._alive if node[1] > newest.get(node[0], node[1])}
        self.skipped |= beyond
        self._alive = {node: meta for node, meta in self._alive.items() if node not in beyond}

    def give_up(self) -> None:
        """Nobody can say any more which checkpoints are useless."""
        self._given_up = not self._acyclic
        self._forget()

    def found(self) -> frozenset[Node] | None:
        """The useless checkpoints of the run so far; None: nobody can say."""
        if self._given_up:
            return None
        timelines = [*self._timelines, self._alive.values()]
        return frozenset(
            node for metas in timelines for node in useless_checkpoints(topology_of(metas), metas)
        )

    def _remember(self, counters: int) -> None:
        self._counters += counters
        if self._counters > COUNTERS_MAX:
            self.give_up()

    def _forget(self) -> None:
        self._alive, self._timelines, self.skipped = {}, [], set()


def topology_of(metas: Collection[CheckpointMeta]) -> Topology:
    """The tasks and channels of a job, as far as its checkpoints count them."""
    tasks: dict[TaskId, None] = {meta.task: None for meta in metas}
    source: Mapping[ChannelId, TaskId] = {c: meta.task for meta in metas for c in meta.sent}
    target: Mapping[ChannelId, TaskId] = {c: meta.task for meta in metas for c in meta.received}
    ends = [(channel, source[channel], target[channel]) for channel in source if channel in target]
    return Topology(tuple(tasks), tuple(Channel(*end) for end in ends))


def _is_cyclic(topology: Topology) -> bool:
    edges: dict[TaskId, set[TaskId]] = {}
    for channel in topology.channels:
        if channel.source == channel.target:
            return True
        edges.setdefault(channel.target, set()).add(channel.source)
    try:
        TopologicalSorter(edges).prepare()
    except CycleError:
        return True
    return False


def _has_orphans(line: Collection[CheckpointMeta]) -> bool:
    """Whether a task on the line has received what another on it has not sent."""
    sent = {channel: seq for meta in line for channel, seq in meta.sent.items()}
    received = ((channel, seq) for meta in line for channel, seq in meta.received.items())
    return any(seq > sent.get(channel, 0) for channel, seq in received)
