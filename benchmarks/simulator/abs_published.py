"""ABS, algorithm 2 (snapshots of cyclic graphs), as it was published, and with half of the correction.

The lines that are cited are those of the paper's listing. The published algorithm assumes that the
markers of back edges come last. With parallel tasks they need not: the task of another slot may have
aligned, and its marker have travelled a back edge, before this task has the markers of its regular
inputs.
"""

from snapline.core.effects import Block, Forward, Record, Seal, Snapshot, Unblock
from snapline.core.guarantee import Guarantee
from snapline.core.messages import Marker
from snapline.core.protocol import CheckpointProtocol, TaskContext, TaskEffects
from snapline.ids import ChannelId, CheckpointNo
from snapline.protocols.aligned import AlignedCoordinator, AlignedTask


class PublishedTask(AlignedTask):
    """Marks all inputs, back edges too, and compares the marked ones with the regular ones."""

    def __init__(self, context: TaskContext) -> None:
        super().__init__(context)
        self.back_edges = [c.id for c in context.inputs if c.feedback]  # `loop_inputs`
        self.regular = [c.id for c in context.inputs if not c.feedback]
        self.marked: list[ChannelId] = []
        self.logging = False

    def on_marker(self, channel: ChannelId, marker: Marker) -> TaskEffects:
        if marker.checkpoint < self.round:
            return  # of a round that was given up: the paper has none
        if marker.checkpoint > self.round:
            yield from self._expect(marker.checkpoint)
        self.marked.append(channel)  # line 9
        if channel not in self.back_edges:  # line 11
            self.cut.append(channel)
            yield Block(channel)  # line 12
            if not self.logging and self.all_regular_marked():  # line 13
                yield from self.copy_state()
        if len(self.marked) == len(self.context.inputs):  # line 19
            yield from self._expect(self.round + 1)

    def all_regular_marked(self) -> bool:
        return sorted(self.marked) == sorted(self.regular)  # line 13: `marked = regular`

    def copy_state(self) -> TaskEffects:
        self.logging = True
        yield Snapshot(self.round, open=True)  # line 14: the copy; stored when all logs have ended
        for edge in self.back_edges:
            if edge not in self.marked:
                yield Record(edge)  # lines 24 to 26: until its marker comes
        yield Forward(Marker(self.round))  # line 15
        yield Seal(self.round)
        yield from [Unblock(channel) for channel in self.cut]  # lines 16 and 17
        self.cut = []

    def _begin_at_source(self) -> TaskEffects:
        yield Snapshot(self.round)
        yield Forward(Marker(self.round))
        yield from self._expect(self.round + 1)

    def _expect(self, round_next: CheckpointNo) -> TaskEffects:
        yield from super()._expect(round_next)
        self.marked, self.logging = [], False  # lines 21 and 22


class ComparedTask(PublishedTask):
    """Compares only the marked regular inputs with the regular ones; still blocks no back edge."""

    def all_regular_marked(self) -> bool:
        return all(channel in self.marked for channel in self.regular)


def _protocol(name: str, task: type[AlignedTask]) -> CheckpointProtocol:
    return CheckpointProtocol(
        name, name, task, AlignedCoordinator, (Guarantee.EXACTLY_ONCE,), cycles=True
    )


PUBLISHED = _protocol("abs-2-as-published", PublishedTask)
COMPARED = _protocol("abs-2-comparison-mended", ComparedTask)
