"""The checkpoint graph of a rollback, as the papers draw it: checkpoints, what they depend on, the line.

A row for each task, its checkpoints from left to right. An arrow stands for all messages that were sent
between two checkpoints of one task and received between two of another. Arrows that make the newest
checkpoints inconsistent are red and dashed: received before a checkpoint, sent after the sender's last one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from snapline.core.messages import CheckpointMeta, RecoveryLine, initial_meta
from snapline.core.topology import Topology
from snapline.ids import CheckpointNo, Micros, TaskId, checkpoint_label
from snapline.report.charts.canvas import Canvas, Key, legend, shortened, tipped
from snapline.report.spacetime.svg import box, number, points, ring, segment, text
from snapline.report.spacetime.svg import checkpoint as checkpoint_mark

SHOWN = {True: 4, False: 8}
"""How many checkpoints of each task are shown on narrow and on wide paper: the newest, and the line."""
GRAPH_ROW = 46.0
TASKS_MAX = 16


@dataclass(frozen=True, slots=True)
class GraphedRollback:
    """A rollback: its line, and the checkpoints that were stored until then, in the order of storing."""

    at_us: Micros
    line: RecoveryLine
    stored: Sequence[CheckpointMeta]


@dataclass(frozen=True, slots=True)
class _Node:
    meta: CheckpointMeta
    x: float
    y: float


def checkpoint_graph(
    canvas: Canvas, rollback: GraphedRollback, topology: Topology, *, title: str
) -> str:
    """The graph of the checkpoints that a rollback could choose from."""
    tasks = _drawn_tasks(rollback, topology)
    keys = [
        Key(lambda x, y: checkpoint_mark(x + 10, y, ("saved",)), "checkpoint"),
        Key(lambda x, y: checkpoint_mark(x + 10, y, ("skipped",)), "skipped"),
        Key(lambda x, y: segment("recovery", x, y, x + 20, y), "recovery line"),
        Key(lambda x, y: segment("depends", x, y, x + 20, y), "messages"),
        Key(lambda x, y: segment("orphans", x, y, x + 20, y), "orphans"),
    ]
    parts, top = legend(canvas, keys, 12)
    nodes = _placed(canvas, rollback, tasks, top + 18)
    for row, task in enumerate(tasks):
        y = top + 18 + row * GRAPH_ROW
        parts.append(segment("lane", _left(canvas), y, canvas.width - 14, y))
        parts.append(
            text(_left(canvas) - 8, y + 4, "name end", shortened(task, _left(canvas) - 10))
        )
    parts += _arrows(nodes, topology)
    chosen = _chosen(nodes, rollback.line)
    parts.append(points("recovery", "polyline", chosen))
    for task, row_nodes in nodes.items():
        for node in row_nodes:
            parts.append(_mark(node, rollback.line.checkpoints[task]))
    return canvas.svg(title, top + 6 + len(tasks) * GRAPH_ROW, parts)


def drawn_checkpoints(rollback: GraphedRollback, topology: Topology) -> list[CheckpointMeta]:
    """The stored checkpoints that the graph shows on wide paper, in the order of storing."""
    tasks = _drawn_tasks(rollback, topology)
    shown = {
        (meta.task, meta.checkpoint)
        for task in tasks
        for meta in _newest(rollback, task, SHOWN[False])
    }
    return [meta for meta in rollback.stored if (meta.task, meta.checkpoint) in shown]


def _drawn_tasks(rollback: GraphedRollback, topology: Topology) -> list[TaskId]:
    return [task for task in topology.tasks if task in rollback.line.checkpoints][:TASKS_MAX]


def _left(canvas: Canvas) -> float:
    return 84.0 if canvas.narrow else 120.0


def _placed(
    canvas: Canvas, rollback: GraphedRollback, tasks: Sequence[TaskId], top: float
) -> dict[TaskId, list[_Node]]:
    """Where each checkpoint stands: in the order in which they were stored, evenly spaced."""
    shown = {task: _newest(rollback, task, SHOWN[canvas.narrow]) for task in tasks}
    kept = {(meta.task, meta.checkpoint) for metas in shown.values() for meta in metas}
    stored = [(meta.task, meta.checkpoint) for meta in rollback.stored]
    rank = {node: at for at, node in enumerate((node for node in stored if node in kept), 1)}
    left, right = _left(canvas) + 16, canvas.width - 26
    step = (right - left) / max(1, len(rank))
    return {
        task: [
            _Node(meta, left + rank.get((task, meta.checkpoint), 0) * step, top + row * GRAPH_ROW)
            for meta in shown[task]
        ]
        for row, task in enumerate(tasks)
    }


def _newest(rollback: GraphedRollback, task: TaskId, most: int) -> list[CheckpointMeta]:
    """The newest checkpoints of a task; the one on the line is always among them."""
    stored = [meta for meta in rollback.stored if meta.task == task]
    wanted = rollback.line.checkpoints[task]
    since = [meta for meta in stored if meta.checkpoint >= wanted]
    before = [initial_meta(task), *(meta for meta in stored if meta.checkpoint < wanted)]
    if not any(meta.checkpoint == wanted for meta in since):
        since, before = [initial_meta(task), *since], []
    if len(since) >= most:
        return [since[0], *since[len(since) - most + 1 :]]
    return [*before[max(0, len(before) - (most - len(since))) :], *since]


def _chosen(
    nodes: Mapping[TaskId, Sequence[_Node]], line: RecoveryLine
) -> list[tuple[float, float]]:
    found = [
        (node.x, node.y)
        for task, row in nodes.items()
        for node in row
        if node.meta.checkpoint == line.checkpoints[task]
    ]
    if not found:
        return []
    return [(found[0][0], found[0][1] - 16), *found, (found[-1][0], found[-1][1] + 9)]


def _mark(node: _Node, chosen: CheckpointNo) -> str:
    number_of = node.meta.checkpoint
    states = ["skipped" if number_of > chosen else "saved"]
    if node.meta.forced:
        states.append("forced")
    label = checkpoint_label(number_of)
    drawn = ring(node.x, node.y) if number_of == chosen else ""
    drawn += checkpoint_mark(node.x, node.y, states)
    drawn += text(node.x, node.y + 20, "tick middle", label)
    what = (
        "on the line" if number_of == chosen else "skipped" if number_of > chosen else "before it"
    )
    return tipped(f"checkpoint {label} of {node.meta.task}, {what}", drawn)


def _arrows(nodes: Mapping[TaskId, Sequence[_Node]], topology: Topology) -> Iterator[str]:
    for channel in topology.channels:
        source, target = nodes.get(channel.source, ()), nodes.get(channel.target, ())
        if not source or not target or channel.source == channel.target:
            continue
        sent = [node.meta.sent.get(channel.id, 0) for node in source]
        received = [node.meta.received.get(channel.id, 0) for node in target]
        for at in range(1, len(target)):
            low, high = received[at - 1], received[at]
            if high <= low:
                continue
            yield from _into(source, sent, target, at, (low, high))


def _into(
    source: Sequence[_Node],
    sent: Sequence[int],
    target: Sequence[_Node],
    at: int,
    window: tuple[int, int],
) -> Iterator[str]:
    """The arrows of what one interval of a receiver has taken, one from each interval of the sender."""
    low, high = window
    end = (target[at - 1].x + 0.55 * (target[at].x - target[at - 1].x), target[at].y)
    for place in range(1, len(source)):
        first, last = max(low, sent[place - 1]), min(high, sent[place])
        if first < last:
            begin = source[place - 1].x + 0.45 * (source[place].x - source[place - 1].x)
            words = f"{last - first} messages sent before {_label(source[place])}"
            yield _arrow("depends", (begin, source[place].y), end, words)
    if high > sent[-1]:
        words = f"{high - max(low, sent[-1])} messages sent after {_label(source[-1])}: orphans"
        yield _arrow("orphans", (source[-1].x + 12, source[-1].y), end, words)


def _label(node: _Node) -> str:
    return f"{checkpoint_label(node.meta.checkpoint)} of {node.meta.task}"


def _arrow(kind: str, begin: tuple[float, float], end: tuple[float, float], words: str) -> str:
    (x1, y1), (x2, y2) = begin, end
    path = f"M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}"
    head = box("dot-end", x2 - 1.6, y2 - 1.6, 3.2, 3.2)
    return tipped(words, f'<path class="{kind}" d="{path}"/>{head}', f"mark {kind}-end")
