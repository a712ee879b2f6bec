"""Z-paths against their definition, and useless checkpoints against every line there could be."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from recovery_executions import all_lines, parse, timelines, without_orphans

from snapline.core.messages import CheckpointMeta
from snapline.ids import TaskId
from snapline.recovery.components import strong_components
from snapline.recovery.zpaths import IntervalGraph, useless_checkpoints

NEVER = 1 << 60


def counted_messages(execution):
    """(source, sent in, target, received in) of what some checkpoint has counted as received."""
    messages = {}
    for (channel, seq), received_in in execution.received_in.items():
        ends = execution.topology.by_id[channel]
        if received_in < execution.taken.get(ends.target, 0):
            sent_in = execution.sent_in[channel, seq]
            messages[channel, seq] = (ends.source, sent_in, ends.target, received_in)
    return messages


def shortest_by_definition(messages, origin, end):
    """How many messages the shortest Z-path needs, from the definition; None without a path."""
    (start, x), (goal, y) = origin, end
    wave = [m for m in messages.values() if m[0] == start and m[1] >= x]
    seen, length = [], 1
    while wave:
        if any(m[2] == goal and m[3] < y for m in wave):
            return length
        seen += wave
        wave = [
            n
            for n in messages.values()
            if n not in seen and any(n[0] == m[2] and n[1] >= m[3] for m in wave)
        ]
        length += 1
    return None


def nodes(execution, metas):
    """Every checkpoint with its position in the history of its task."""
    found = {(task, 0): (task, 0) for task in execution.topology.tasks}
    count = dict.fromkeys(execution.topology.tasks, 0)
    for meta in metas:
        count[meta.task] += 1
        found[meta.task, count[meta.task]] = (meta.task, meta.checkpoint)
    return found


@given(timelines(tasks_max=3), st.data())
def test_a_z_path_is_found_exactly_when_the_definition_has_one(timeline, data):
    execution, metas = timeline
    messages, known = counted_messages(execution), nodes(execution, metas)
    graph = IntervalGraph(execution.topology, metas)
    origin = data.draw(st.sampled_from(list(known)))
    for end in known:
        path = graph.z_path(known[origin], known[end])
        assert (path and len(path)) == shortest_by_definition(messages, origin, end)
        if path is not None:
            chain = [messages[message] for message in path]
            assert shortest_by_definition(dict(enumerate(chain)), origin, end) == len(chain)
            assert all(n[0] == m[2] and n[1] >= m[3] for m, n in pairwise(chain))


@given(timelines(tasks_max=3))
def test_useless_checkpoints_are_those_on_a_z_cycle(timeline):
    execution, metas = timeline
    messages, known = counted_messages(execution), nodes(execution, metas)
    on_cycle = [
        known[node] for node in known if shortest_by_definition(messages, node, node) is not None
    ]
    assert sorted(useless_checkpoints(execution.topology, metas)) == sorted(on_cycle)


@given(timelines(tasks_max=3, checkpoints_max=4))
def test_useless_checkpoints_are_those_on_no_line_even_if_all_took_one_more_now(timeline):
    execution, metas = timeline
    topology = execution.topology
    last = {meta.task: meta for meta in metas}
    everything_sent = {channel.id: NEVER for channel in topology.channels}
    now = [
        CheckpointMeta(
            task,
            NEVER,
            {c.id: everything_sent[c.id] for c in topology.outputs[task]},
            last[task].received if task in last else {},
        )
        for task in topology.tasks
    ]
    on_a_line = {
        (meta.task, meta.checkpoint)
        for chosen in all_lines(topology, [*metas, *now])
        if without_orphans(topology, chosen)
        for meta in chosen.values()
    }
    useless = [n for n in ((m.task, m.checkpoint) for m in metas) if n not in on_a_line]
    assert sorted(useless_checkpoints(topology, metas)) == sorted(useless)


def test_a_message_sent_before_the_one_it_follows_was_received_still_makes_a_z_cycle():
    topology, metas = parse("p: r2 c1 s1 | q: s2 r1 c1")
    assert useless_checkpoints(topology, metas) == (("p", 1),)
    graph = IntervalGraph(topology, metas)
    p1 = (TaskId("p"), 1)
    assert graph.z_path(p1, p1) == (("p>q", 1), ("q>p", 1))


def test_a_checkpoint_between_receive_and_send_breaks_the_z_cycle():
    topology, metas = parse("p: r2 c1 s1 | q: s2 c1 r1 c2")
    assert useless_checkpoints(topology, metas) == ()
    p1 = (TaskId("p"), 1)
    assert IntervalGraph(topology, metas).z_path(p1, p1) is None


def test_in_the_domino_of_figure_5_only_checkpoints_that_no_line_can_hold_are_useless():
    story = "o1: c1 s1 r3 c2 s4 r6 c3 | o2: c1 r1 s2 c2 r4 s5 c3 | o3: c1 r2 s3 r5 c2 s6"
    assert useless_checkpoints(*parse(story)) == (("o1", 2), ("o2", 2), ("o3", 2))


def test_skipped_is_not_useless():
    topology, metas = parse("p: c1 s1 | q: r1 c1")
    assert useless_checkpoints(topology, metas) == ()


def test_the_initial_state_is_never_useless():
    assert useless_checkpoints(*parse("p: s1 r2 | q: r1 s2")) == ()


@given(
    st.integers(0, 8).flatmap(
        lambda n: (
            st.lists(st.lists(st.integers(0, n - 1)), min_size=n, max_size=n) if n else st.just([])
        )
    )
)
def test_nodes_share_a_component_exactly_when_they_lead_to_each_other(successors):
    size = len(successors)
    leads = [
        [end == node or end in successors[node] for end in range(size)] for node in range(size)
    ]
    for via in range(size):
        for a in range(size):
            for b in range(size):
                leads[a][b] = leads[a][b] or (leads[a][via] and leads[via][b])
    component = strong_components(successors)
    for a in range(size):
        for b in range(size):
            assert (component[a] == component[b]) == (leads[a][b] and leads[b][a])


def test_a_walk_may_be_as_long_as_it_likes():
    size = 50_000
    ring = [[(node + 1) % size] for node in range(size)]
    assert strong_components(ring) == [0] * size
