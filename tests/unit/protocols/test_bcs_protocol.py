from scenes import TaskScene

from snapline.core.effects import Deliver, Forward, SetTimer, Snapshot
from snapline.core.events import LocalCheckpoint
from snapline.core.messages import Marker
from snapline.protocols.bcs import BCS


def index(lc: int) -> bytes:
    return lc.to_bytes(8, "little")


def two() -> tuple[TaskScene, TaskScene]:
    return TaskScene(BCS, me="p", peers="p q"), TaskScene(BCS, me="q", peers="p q")


def test_a_local_checkpoint_raises_the_index():
    p, _ = two()
    assert p.send("q").header == index(0)
    assert p.timer(LocalCheckpoint())[0] == Snapshot(1, index(1))
    assert p.timer(LocalCheckpoint())[0] == Snapshot(2, index(2))
    assert p.send("q").header == index(2)


def test_a_larger_index_forces_a_checkpoint_with_that_index_before_delivery():
    p, q = two()
    for _ in range(3):
        p.timer(LocalCheckpoint())
    m = p.send("q")
    assert not q.protocol.learns_nothing(m)
    assert q.take(m) == (Snapshot(1, index(3), forced=True), Deliver(m))
    assert q.protocol.learns_nothing(m)
    assert q.take(m) == (Deliver(m),)
    assert q.timer(LocalCheckpoint())[0] == Snapshot(2, index(4))


def test_an_equal_or_smaller_index_forces_nothing():
    p, q = two()
    m = p.send("q")
    assert q.take(m) == (Deliver(m),)
    q.timer(LocalCheckpoint())
    assert q.take(m) == (Deliver(m),)
    assert q.send("p").header == index(1)


def test_the_index_is_in_the_snapshot():
    p, _ = two()
    p.protocol.restore(b"")
    assert p.send("q").header == index(0)
    p.protocol.restore(index(5))
    assert p.send("q").header == index(5)
    assert p.timer(LocalCheckpoint())[0] == Snapshot(1, index(6))


def test_a_consistent_round_counts_like_a_local_checkpoint():
    _, q = two()
    assert q.marker("A", 7) == (Snapshot(1, index(1)), Forward(Marker(7)))


def test_every_message_is_logged():
    p, _ = two()
    assert p.protocol.log


def test_a_checkpoint_by_count_raises_the_index_and_a_forced_one_does_not_end_the_count():
    q = TaskScene(BCS, me="q", peers="p q", every_records=10)
    assert [type(effect) for effect in q.progress(10)] == [Snapshot, SetTimer]
    assert q.protocol.lc == 1
    q.progress(6)
    p, _ = two()
    for _ in range(5):
        p.timer(LocalCheckpoint())
    assert q.take(p.send("q"))[0].forced
    assert q.protocol.lc == 5
    snapshot, _ = q.progress(4)
    assert (snapshot.forced, q.protocol.lc) == (False, 6)
