"""Checkpoints by group in the simulator: under every protocol, and what becomes of a damaged group."""

import pytest
from sim_runs import kept

from snapline.core.events import SnapshotUnreadable
from snapline.engine.slot.checkpoints import stored_groups
from snapline.ids import TaskId
from snapline.journal.entry import Handled, Happened
from snapline.journal.fault_happenings import SnapshotDamaged
from snapline.journal.happenings import GarbageCollected, Happening
from snapline.journal.loss_happenings import GroupLost, TaskLoss
from snapline.protocols import PROTOCOLS
from snapline.sim.case import Case
from snapline.sim.inject import SimInjector
from snapline.sim.run import Outcome

DAMAGE = "damage slot=1 at=1499ms; kill slot=1 at=1500ms"
SEEDS = range(1, 6)
GROUPS_OF_3 = (("group_rows", 3),)
TASK = TaskId("average/1")


@pytest.mark.parametrize("protocol", [name for name, p in PROTOCOLS.items() if p.saves])
def test_groups_are_restored_and_collected_under_every_protocol(protocol):
    outcomes = [kept(Case(protocol, "q6", 13), journal=True)]
    assert sum(outcome.stats.get("groups", 0) for outcome in outcomes) > 5
    collected = [
        entry
        for outcome in outcomes
        for entry in outcome.journal
        if isinstance(entry, Happened) and isinstance(entry.what, GarbageCollected)
    ]
    assert collected, "and an invariant has looked at each of these"


@pytest.fixture
def damaged_groups(monkeypatch):
    """Damage strikes a group of the task with windows, and not any object of any task."""

    def damage(self, fault):
        engine, store = self.world.coordinator.engine, self.world.storage.store
        meta = engine.registry.newest(TASK)
        if groups := stored_groups(store, engine.registry.chain(TASK, meta.checkpoint)):
            self._hit(fault)
            store.damage(self.rng.choice(groups).key)
            self.world.note(TASK, SnapshotDamaged(str(fault), meta.checkpoint))

    monkeypatch.setattr(SimInjector, "_damage", damage)


def damaged_runs(protocol: str) -> list[tuple[Outcome, list[Happening]]]:
    """Runs in which a group was damaged, with all that happened."""
    cases = [Case(protocol, "q6", n, faults=DAMAGE, options=GROUPS_OF_3) for n in SEEDS]
    outcomes = [kept(case, journal=True) for case in cases]
    told = [[e.what for e in o.journal if isinstance(e, Happened)] for o in outcomes]
    return [each for each in zip(outcomes, told, strict=True) if each[0].stats["damaged"]]


@pytest.mark.usefixtures("damaged_groups")
def test_a_damaged_group_costs_its_rows_where_slots_restart_alone():
    found = 0
    for _, told in damaged_runs("partial"):
        lost = [what for what in told if isinstance(what, GroupLost)]
        assert len(lost) <= 1, "one group was damaged"
        assert all(what.task == TASK and 1 <= what.rows <= 3 for what in lost)
        back = next(w for w in told if isinstance(w, TaskLoss) and w.task == TASK)
        assert back.checkpoint or not lost, (
            "it went back to its checkpoint, and did not begin empty"
        )
        found += len(lost)
    assert found, "no seed has damaged a group of a task that was then restored"


@pytest.mark.parametrize("workload", ["q6", "habits", "sjoin", "gjoin", "fab"])
def test_a_run_that_lost_an_old_group_is_not_accused_of_what_it_held(workload, monkeypatch):
    """The oldest group of each task is damaged: its rows came long before the checkpoint."""

    def damage(self, fault):
        engine, store = self.world.coordinator.engine, self.world.storage.store
        for task in self.world.job.hosted[fault.slot]:
            meta = engine.registry.newest(task)
            if groups := stored_groups(store, engine.registry.chain(task, meta.checkpoint)):
                self._hit(fault)
                store.damage(groups[0].key)
                self.world.note(task, SnapshotDamaged(str(fault), meta.checkpoint))

    monkeypatch.setattr(SimInjector, "_damage", damage)
    faults = DAMAGE.replace("slot=1", "slot=0")  # there is the one task of sjoin
    cases = [Case("partial", workload, n, faults=faults, options=GROUPS_OF_3) for n in SEEDS]
    found = sum(kept(case).stats["groups lost"] for case in cases)
    assert found, "no seed has damaged a group of a task that was then restored"


@pytest.mark.usefixtures("damaged_groups")
def test_a_damaged_group_is_damage_as_ever_where_nothing_may_be_lost():
    runs = damaged_runs("aligned")
    assert runs
    unreadable = 0
    for outcome, told in runs:
        assert not any(isinstance(what, GroupLost) for what in told)
        handled = (entry.event for entry in outcome.journal if isinstance(entry, Handled))
        unreadable += any(isinstance(event, SnapshotUnreadable) for event in handled)
    assert unreadable, "in no run was the checkpoint given up"
