"""The account of a simulated run: what happened by the journal, and not by the engine's claims.

The monitor keeps it (`monitor.py`), and the invariants compare the engine's claims with it.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from snapline.core.messages import CheckpointMeta, Message, RecoveryLine
from snapline.engine.groups.index import Held
from snapline.ids import ChannelId, CheckpointNo, Epoch, Incarnation, Micros, Seq, TaskId
from snapline.journal.loss_happenings import Declared
from snapline.recovery.kept_lines import KeptLines
from snapline.sim.world.world import World
from snapline.storage.api import Extent

Line: TypeAlias = Mapping[TaskId, CheckpointNo]


@dataclass(slots=True)
class TaskAccount:
    """What one life of a task did, according to the journal."""

    epoch: Epoch
    incarnation: Incarnation
    delivered: dict[ChannelId, Seq] = field(default_factory=dict)
    blocked: dict[ChannelId, None] = field(default_factory=dict)
    logged: dict[ChannelId, Seq] = field(default_factory=dict)  # the last message stamped to log
    taken: CheckpointNo | None = None  # the last checkpoint


class RunAccount:
    """The account of a whole run."""

    def __init__(self, world: World, *, thorough: bool = True) -> None:
        self.world = world
        self.thorough = thorough  #: check whole lines; off for jobs of hundreds of tasks
        self.stats: Counter[str] = Counter()
        self.accounts: dict[TaskId, TaskAccount] = {}  #: of the present life of each task
        #: per checkpoint what was delivered before it was taken, and which one was taken before it
        self.taken: dict[tuple[TaskId, CheckpointNo], Mapping[ChannelId, Seq]] = {}
        self.before: dict[tuple[TaskId, CheckpointNo], CheckpointNo | None] = {}
        self.metas: dict[tuple[TaskId, CheckpointNo], CheckpointMeta] = {}  #: all that ever counted
        self.reported: dict[tuple[TaskId, CheckpointNo], CheckpointMeta] = {}  #: as they were taken
        self.stored: dict[
            str, tuple[TaskId, CheckpointNo]
        ] = {}  #: by name, the snapshots that counted
        #: per checkpoint that counted, the groups to which it refers
        self.groups: dict[tuple[TaskId, CheckpointNo], Held] = {}
        self.live: dict[TaskId, list[CheckpointNo]] = {}  #: what counts in the live timeline
        self.decisions = 0  #: number of the last one
        self.epoch: Epoch = 0  #: the epoch that the last decision names
        self.kept: KeptLines | None = None
        self.lines: list[RecoveryLine] = []  #: the oldest kept line, and the newest
        self.public: dict[TaskId, int] = {}  #: rows published, per sink task
        self.manifests: dict[int, Mapping[TaskId, Extent]] = {}  #: all that were published
        self.carried: dict[ChannelId, Seq] = {}  #: the last message of this epoch on each channel
        self.truth: dict[ChannelId, dict[Seq, Message]] = {}  #: what was last sent under a number
        self.crashed_after_commit = False
        self.losses_us: list[Micros] = []  #: when a process was lost, or another took its place
        self.declared: list[Declared] = []  #: what the run says that it lost
        self.killed: dict[
            tuple[str, Incarnation | None], None
        ] = {}  #: lives that are known as lost
        self.first_line_us: Micros | None = None  #: when the first line was committed
        self.first_output_us: Micros | None = None  #: when a sink first wrote something
        self.recovering = True  #: from a rollback until all run again
        self.round_open = False

    def prunable(self, channel: ChannelId) -> Seq:
        """The last message of a channel whose log nobody needs: the older kept line received it."""
        target = self.world.job.topology.by_id[channel].target
        meta = self.metas.get((target, self.lines[0].checkpoints[target])) if self.lines else None
        return meta.received.get(channel, 0) if meta else 0
