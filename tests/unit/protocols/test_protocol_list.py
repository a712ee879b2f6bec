"""What holds for every protocol, the baseline, and a protocol that is not in the list."""

import json

import pytest
from scenes import CoordinatorScene, TaskScene, edge, line, message, meta

from snapline.core.effects import Deliver, Persist, Rollback, Scope, SetTimer, Snapshot
from snapline.core.events import (
    LocalCheckpoint,
    NextRound,
    Paused,
    Quiet,
    SnapshotUnreadable,
    TriggerRound,
)
from snapline.core.guarantee import Guarantee
from snapline.core.messages import Stamp
from snapline.core.topology import Topology
from snapline.errors import ProtocolViolation
from snapline.protocols import PROTOCOLS, refusal
from snapline.protocols.none import NONE
from solo_protocol import SOLO

STRAIGHT = Topology(("a", "t"), (edge("A"),))
LOOP = Topology(("a", "t"), (edge("A"), edge("L*", "t")))


def test_the_list_has_every_protocol_under_its_own_name():
    assert list(PROTOCOLS) == [
        "none",
        "aligned",
        "aligned-cyclic",
        "unaligned",
        "synchronous",
        "uncoordinated",
        "hmnr",
        "bcs",
        "partial",
    ]
    assert [protocol.name for protocol in PROTOCOLS.values()] == list(PROTOCOLS)


def test_what_each_protocol_promises():
    exactly, least, most = (
        Guarantee.EXACTLY_ONCE,
        Guarantee.AT_LEAST_ONCE,
        Guarantee.AT_MOST_ONCE,
    )
    assert {name: protocol.guarantees for name, protocol in PROTOCOLS.items()} == {
        "none": (Guarantee.NOTHING, Guarantee.BOUNDED_LOSS),
        "aligned": (exactly, least),
        "aligned-cyclic": (exactly, least, most),
        "unaligned": (exactly, most),
        "synchronous": (exactly, most),
        "uncoordinated": (exactly, least, most),
        "hmnr": (exactly, least, most),
        "bcs": (exactly, least, most),
        "partial": (Guarantee.BOUNDED_LOSS, Guarantee.NOTHING),
    }
    assert [n for n, p in PROTOCOLS.items() if p.publishes_at_once] == ["none", "partial"]
    assert [n for n, p in PROTOCOLS.items() if not p.saves] == ["none"]
    assert [n for n, p in PROTOCOLS.items() if p.heeds_policies] == ["partial"]
    assert [n for n, p in PROTOCOLS.items() if not p.bounded] == ["uncoordinated"]
    assert [n for n, p in PROTOCOLS.items() if p.no_useless] == ["hmnr", "bcs"]


def test_a_cycle_is_refused_with_the_names_of_those_that_can():
    refused = {name: refusal(protocol, LOOP) for name, protocol in PROTOCOLS.items()}
    assert [name for name, reason in refused.items() if reason] == ["aligned"]
    assert refused["aligned"] == (
        "aligned cannot run a dataflow with a cycle: choose one of none, aligned-cyclic, unaligned,"
        " synchronous, uncoordinated, hmnr, bcs, partial"
    )


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_every_protocol_runs_a_graph_without_cycles(protocol):
    assert refusal(protocol, STRAIGHT) is None


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_the_same_events_give_the_same_effects(protocol):
    def run() -> list[object]:
        task, job = TaskScene(protocol, "A"), CoordinatorScene(protocol)
        return [task.start(), job.began, job.lost("t"), job.start(9)]

    assert run() == run()


def test_none_delivers_and_saves_nothing():
    task = TaskScene(NONE, "A")
    assert task.start() == ()
    assert task.take(message("A")) == (Deliver(message("A")),)
    assert task.protocol.stamp(edge("X", "t", "u")) == Stamp()


def test_none_restarts_only_what_was_lost():
    job = CoordinatorScene(NONE)
    assert job.began == ()
    assert job.lost("a", "t") == (Rollback(line(a=0, t=0), Scope.LOST),)
    assert job.protocol.handle(Quiet()) == ()


def test_none_expects_no_checkpointing():
    with pytest.raises(ProtocolViolation):
        TaskScene(NONE, "A").marker("A", 1)
    with pytest.raises(ProtocolViolation):
        TaskScene(NONE).command(TriggerRound(1))
    with pytest.raises(ProtocolViolation):
        TaskScene(NONE).timer(NextRound())
    for event in (SnapshotUnreadable("a", 1), Paused("a", {}, {})):
        with pytest.raises(ProtocolViolation):
            CoordinatorScene(NONE).protocol.handle(event)


def test_every_task_is_saved_on_a_timer_of_its_own():
    saved = TaskScene(SOLO, "A", interval_ms=70)
    assert saved.start() == (SetTimer(LocalCheckpoint(), 70),)
    assert saved.timer(LocalCheckpoint()) == (Snapshot(1), SetTimer(LocalCheckpoint(), 70))
    assert saved.timer(LocalCheckpoint())[0] == Snapshot(2)
    with pytest.raises(ProtocolViolation):
        saved.timer(NextRound())


def test_only_lost_tasks_go_back_each_to_its_own_newest_checkpoint():
    job = CoordinatorScene(SOLO)
    (persist,) = job.stored("t", 4)
    assert json.loads(persist.memo) == {"a": 0, "b": 0, "t": 4}
    assert job.lost("a", "t") == (Rollback(line(a=0, t=4), Scope.LOST),)
    resumed = CoordinatorScene(SOLO)
    resumed.protocol.restore(persist.memo, (meta("t", 4),))
    assert resumed.lost("t") == (Rollback(line(t=4), Scope.LOST),)
    assert resumed.protocol.handle(SnapshotUnreadable("t", 4)) == (
        Persist(b'{"a": 0, "b": 0, "t": 0}'),
        Rollback(line(t=0), Scope.LOST),
    )
