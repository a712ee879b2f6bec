"""Partial fault tolerance in the simulator: only what a policy says is lost, and only where it says so."""

import random

import pytest
from sim_runs import can_run, kept

from discarded import records_of
from snapline.batch import Batch, concat
from snapline.core.effects import Rollback
from snapline.engine.slot import parting
from snapline.ids import TaskId
from snapline.journal.entry import COORDINATOR, Built, Handled, Happened
from snapline.journal.happenings import (
    JobRunning,
    MessageReplayed,
    MessagesDiscarded,
    SlotLost,
    SlotRunning,
)
from snapline.journal.loss_happenings import (
    RowsMissed,
    StaleDropped,
    StaleRowsDropped,
    TaskLoss,
)
from snapline.protocols import PROTOCOLS
from snapline.sim.case import Case, faults_of
from snapline.sim.inject import SimInjector
from snapline.sim.run import PATIENCE_MS, build_job
from snapline.sim.watch.watched import WatchedWorld
from snapline.sim.world.costs import Costs
from snapline.workload import WORKLOADS
from snapline.workload.joins.pairs import BothStreams
from snapline.workload.lineage.model import shape_of

AWAY = "kill slot=1 at=900ms for=500ms"
DAMAGED = "damage slot=1 at=1499ms; kill slot=1 at=1500ms"
RUN = {"guarantee": "nothing"}


def happenings(outcome, kind):
    return [e for e in outcome.journal if isinstance(e, Happened) and isinstance(e.what, kind)]


def operators(workload: str) -> list[str]:
    flow = WORKLOADS[workload].build(Case("none", workload, 1).params)
    return [name for name, node in flow.graph.nodes.items() if node.ingress is None]


def nothing_saved(workload: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, "no") for name in operators(workload))


@pytest.mark.parametrize("seed", [2, 4])
@pytest.mark.parametrize("workload", ["q12", "sst", "sjoin"])
@pytest.mark.parametrize("protocol", ["partial", "none"])
def test_a_slot_that_is_lost_before_the_job_runs_says_what_it_skips(protocol, workload, seed):
    """It begins at the present, as a slot that comes back to a running job does."""
    faults = "kill slot=1 at=180ms"
    outcome = kept(
        Case(protocol, workload, seed, guarantee="bounded-loss", faults=faults), journal=True
    )
    first, *_ = happenings(outcome, (SlotLost, JobRunning))
    assert isinstance(first.what, SlotLost)
    assert {e.what.task for e in happenings(outcome, TaskLoss) if e.what.task.endswith("/1")}


@pytest.mark.parametrize("workload", ["counting", "q12", "sst", "q3", "nhop"])
def test_with_nothing_saved_and_all_edges_dropping_it_is_none_seed_by_seed(workload):
    for seed in range(1, 6):
        as_none = kept(Case("none", workload, seed, **RUN), journal=True)
        unsaved = Case("partial", workload, seed, save=nothing_saved(workload), **RUN)
        as_partial = kept(unsaved, journal=True)
        assert as_partial.problems == as_none.problems
        assert as_partial.virtual_ms == as_none.virtual_ms
        same = [
            [(e.at_us, e.actor, e.what) for e in happenings(each, (TaskLoss, MessagesDiscarded))]
            for each in (as_none, as_partial)
        ]
        assert same[0] == same[1]


@pytest.mark.parametrize("workload", [w for w in WORKLOADS if can_run("partial", w)])
def test_without_a_kill_nothing_is_lost(workload):
    for seed in (1, 2, 3):
        outcome = kept(Case("partial", workload, seed, faults="", **RUN), journal=True)
        assert outcome.problems == ()
        assert not happenings(outcome, (TaskLoss, MessagesDiscarded, StaleDropped))


def test_a_saved_task_goes_back_to_its_checkpoint_and_an_unsaved_one_begins_empty():
    saved = Case("partial", "counting", 3, faults=AWAY, save=(("count", "200ms"),), **RUN)
    outcome = kept(saved, journal=True)
    again = [e for e in outcome.journal if isinstance(e, Built) and e.incarnation > 1]
    began = {entry.actor: entry.memo is not None for entry in again if entry.actor != COORDINATOR}
    assert began == {"records/1": False, "count/1": True, "counts/1": False}
    lost = {e.what.task: e.what.from_ms for e in happenings(outcome, TaskLoss)}
    assert 600 < lost["count/1"] < 900, "its checkpoint is at most an interval old"
    assert lost["records/1"] >= 900, "it has no state, so it had nothing before"


def test_what_waits_is_not_discarded():
    case = Case("partial", "counting", 3, faults=AWAY, inputs=(("count", "wait:100"),), **RUN)
    outcome = kept(case, journal=True)
    discarded = {e.what.channel for e in happenings(outcome, MessagesDiscarded)}
    assert not any(channel.endswith(">count/1") for channel in discarded)
    assert outcome.stats["replayed"] > 0, "nothing had to wait"


def test_what_is_kept_is_sent_again_to_the_lost_and_to_nobody_else():
    keep = {"inputs": (("count", "keep"),), "save": (("count", "200ms"),)}
    outcome = kept(Case("partial", "counting", 3, faults=AWAY, **keep, **RUN), journal=True)
    again = {e.what.message.channel for e in happenings(outcome, MessageReplayed)}
    assert again
    # The sender that died with it sends what its log still had, also to receivers that have it.
    assert all(c.endswith(">count/1") or c.startswith("records/1>") for c in again)


def test_a_damaged_checkpoint_makes_a_task_go_back_further_and_the_run_ends():
    """A restore is ordered again: it once hung here, because nobody did."""
    for seed in range(1, 8):
        case = Case("partial", "counting", seed, faults=DAMAGED, save=(("count", "150ms"),), **RUN)
        outcome = kept(case, journal=True)
        assert outcome.stopped is None
    assert outcome.stats["rejoined"] == 1


def test_a_resumed_run_begins_at_what_was_saved():
    faults = "kill coordinator at=1300ms for=100ms"
    case = Case("partial", "counting", 3, faults=faults, save=(("count", "150ms"),), **RUN)
    outcome = kept(case, journal=True)
    again = [e for e in outcome.journal if isinstance(e, Built) and e.epoch > 1]
    restored = {e.actor for e in again if e.memo is not None and e.actor != COORDINATOR}
    assert restored == {"count/0", "count/1", "count/2"}
    assert {e.what.task for e in happenings(outcome, TaskLoss)} >= restored


def watched(case: Case) -> WatchedWorld:
    """The world of a case, after its end."""
    rng = random.Random(f"{case.seed}:world")
    costs = Costs.draw(rng)
    world = WatchedWorld(build_job(case, PROTOCOLS[case.protocol], rng), costs, keep_journal=True)
    SimInjector(world, faults_of(case), case.seed).plan()
    world.run(PATIENCE_MS * 1000)
    assert world.finished
    return world


def second_life(case: Case, sink: str):
    """The rows that slot 1 has written since it was back, and when that was in milliseconds."""
    world = watched(case)
    (back,) = (
        e for e in world.entries if isinstance(e, Happened) and isinstance(e.what, SlotRunning)
    )
    output, task = world.storage.output, TaskId(f"{sink}/1")
    later = [piece for piece in output.pieces(task, "uncommitted") if ".i2" in piece.file]
    rows = [written.rows for piece in later for written in output.read(piece)]
    return (
        (concat(rows) if rows else Batch({}, 0)),
        back.at_us // 1000,
        world.monitor.stats["stale"],
    )


def test_no_window_comes_out_that_ended_while_its_task_was_away():
    """P9. The counts of sst come out when a window ends; those of the time away must not."""
    stale = 0
    for seed in range(1, 12):
        save = (("count", "150ms"),)
        case = Case(
            "partial", "sst", seed, faults="kill slot=1 at=900ms for=600ms", save=save, **RUN
        )
        rows, back_ms, dropped = second_life(case, "counts")
        stale += dropped
        shape = shape_of(case.params)
        if rows.length:
            closed = rows["window"] + shape.window_ms + shape.lateness_ms + shape.bound_ms
            assert closed.min() > back_ms - 250, "a window of the time away was put out"
    assert stale, "no window was stale: nothing was tested"


def test_survivors_are_neither_restored_nor_numbered_anew():
    """P2: in their journal there is one life, one epoch, and no timer that was set anew."""
    outcome = kept(Case("partial", "q12", 4, faults=AWAY, **RUN), journal=True)
    lives = {(e.actor, e.epoch, e.incarnation) for e in outcome.journal if isinstance(e, Built)}
    tasks = {actor for actor, _, _ in lives if actor != COORDINATOR}
    for task in tasks:
        count = sum(actor == task for actor, _, _ in lives)
        assert count == (2 if task.endswith("/1") else 1)
    assert {epoch for actor, epoch, _ in lives if actor != COORDINATOR} == {1}
    rollbacks = [
        effect
        for e in outcome.journal
        if isinstance(e, Handled)
        for effect in e.effects
        if isinstance(effect, Rollback)
    ]
    assert all(t.endswith("/1") for each in rollbacks for t in each.line.checkpoints)
    (lost,), (back,) = happenings(outcome, SlotLost), happenings(outcome, SlotRunning)
    assert back.at_us - lost.at_us > 400_000


def test_what_is_discarded_is_written_down_by_identity():
    """As many records as the journal says, each with its id."""
    case = Case("partial", "counting", 3, faults=AWAY, save=(("count", "200ms"),), **RUN)
    world = watched(case)
    said: dict[str, int] = {}
    for entry in world.entries:
        if isinstance(entry, Happened) and isinstance(entry.what, MessagesDiscarded):
            what = entry.what
            said[what.channel] = said.get(what.channel, 0) + what.records
    written = list(world.storage.discards.read())
    assert records_of(written) == {channel: n for channel, n in said.items() if n}
    assert {discard.kind for _, discard in written} == {"id"}
    ids = [i for _, discard in written for i in discard.identities.tolist()]
    assert len(set(ids)) == len(ids)


def test_a_task_that_goes_back_behind_the_end_of_time_says_so_again():
    """Its receivers had forgotten it with its life before, and a window never came out (mst, seed 37)."""
    kept(Case("partial", "mst", 37, guarantee="bounded-loss"))


JOINED = {"slots": 2, "save": (("join", "200ms"),), "inputs": (("join", "drop"),), **RUN}


def rows_of(outcome, kind):
    return [e.what for e in happenings(outcome, kind)]


def test_a_window_by_rows_forgets_what_others_would_have_driven_out():
    """P11: whoever sent the rows lives on, and says how many of each key did not come."""
    dropped = 0
    for seed in range(1, 9):
        outcome = kept(Case("partial", "gjoin", seed, faults=AWAY, **JOINED), journal=True)
        missed = {what.channel: what for what in rows_of(outcome, RowsMissed)}
        assert missed["stream1/0>join/1#right"].rows > 0
        assert not missed["stream1/0>join/1#right"].estimated
        assert missed["stream1/1>join/1#right"].estimated, "it was lost with its receiver"
        dropped += sum(what.rows for what in rows_of(outcome, StaleRowsDropped))
    assert dropped > 8


def test_rows_whose_sender_was_lost_as_well_are_estimated():
    """Both slots are lost: nobody knows what was sent, and the rate before tells about how much."""
    faults, dropped = "kill slot=0,1 at=900ms for=500ms", 0
    for seed in range(1, 9):
        outcome = kept(Case("partial", "gjoin", seed, faults=faults, **JOINED), journal=True)
        missed = rows_of(outcome, RowsMissed)
        assert missed
        assert all(what.estimated and not what.rows for what in missed)
        dropped += sum(what.rows for what in rows_of(outcome, StaleRowsDropped))
    assert dropped > 0


def test_where_input_is_kept_or_waits_nothing_is_forgotten():
    for inputs in ("keep", "wait"):
        given = {**JOINED, "inputs": (("join", inputs),)}
        outcome = kept(Case("partial", "gjoin", 3, faults=AWAY, **given), journal=True)
        assert not happenings(outcome, (RowsMissed, StaleRowsDropped))


def test_hardly_a_record_meets_a_row_that_should_be_gone(monkeypatch):
    """The oracle counts pairs with such rows: those that the join holds at its checkpoint come later."""
    found: list[int] = []
    beyond = BothStreams.beyond

    def counted(self, pairs, lost):
        more = beyond(self, pairs, lost)
        found.append(sum(map(len, more)))
        return more

    def stale_pairs():
        found.clear()
        for seed in range(1, 9):
            judged = {**JOINED, "guarantee": "bounded-loss"}
            kept(Case("partial", "gjoin", seed, faults=AWAY, **judged))
        return sum(found)

    monkeypatch.setattr(BothStreams, "beyond", counted)
    with_it = stale_pairs()
    monkeypatch.setattr(parting, "forget_stale", lambda *_: 0)
    assert 5 * with_it < stale_pairs()
