"""A world without time: things wait in lanes, and whoever drives it says which is taken next."""

from collections import deque

from snapline.core.messages import Marker
from snapline.engine.control import Frame, Restore
from snapline.engine.coordinator.coordinator import Coordinator
from snapline.engine.coordinator.ledger import Decision
from snapline.engine.job import Job
from snapline.engine.shell import ProbeAlarm, Ticket, TimerAlarm
from snapline.ids import ChannelId, Incarnation, SlotId, TaskId
from snapline.journal.entry import COORDINATOR, Built, Entry, Handled, Stamped
from snapline.journal.fault_happenings import ProcessKilled
from snapline.journal.happenings import SlotLaunched
from snapline.sim.exhaustive.lanes import Item, Lane, Past, number_of
from snapline.sim.exhaustive.processes import SteppedCoordinator, SteppedSlot
from snapline.sim.watch.watched import WatchedWorld
from snapline.sim.world.costs import Costs
from snapline.sim.world.process import Boss

INPUTS = ("take", "read", "replay")


class SteppedWorld(WatchedWorld):
    """Two slots and a coordinator, which take a step only when it is asked for by its lane."""

    coordinator: SteppedCoordinator

    def __init__(self, job: Job, *, keep_journal: bool = False) -> None:
        self.lanes: dict[Lane, deque[Item]] = {}
        self.past = Past()
        self.acting = COORDINATOR  #: the part of the world whose step it is
        self.steps = 0
        self.crashes = 0
        self.fired: dict[tuple[str, str, int], int] = {}  #: timers that went off, by epoch
        self._thought = True  #: what the coordinator knows may have changed
        self._epoch = 0  #: the coordinator's, when lost slots were last removed from `past`
        self._living: dict[str, SteppedSlot] = {}
        self._inputs: dict[str, dict[Lane, int]] = {}  #: ready inputs, as last computed
        super().__init__(job, Costs(), keep_journal=keep_journal)
        self.coordinator.call(self.coordinator.engine.start)

    # What processes ask for.

    def put(self, lane: Lane, item: Item) -> None:
        """Let something wait in a lane, behind what waits there already."""
        self.lanes.setdefault(lane, deque()).append(item)
        self.past.waits(str(lane), 1)

    def sends(self, lane: str) -> None:
        """Note a send: several parts of a process send through one lane, so their order counts."""
        self.past.goes_through(lane, self.past.parts.get(self.acting, 0))

    def _new_coordinator(self, past: Decision | None) -> SteppedCoordinator:
        self.coordinators += 1
        process = SteppedCoordinator(self, self.coordinators)
        process.engine = Coordinator(self.job, process, f"life {self.coordinators}", past)
        return process

    def launch(self, boss: Boss, slot: SlotId, incarnation: Incarnation) -> None:
        """Start a process for a slot; its registration is a step of its own."""
        process = SteppedSlot(self, slot, incarnation, boss)
        process.registered = True  # here every start succeeds, and every end is noticed
        self.processes[slot, incarnation] = self._living[process.actor] = process

        def register() -> None:
            boss.call(lambda: boss.engine.registered_slot(slot, incarnation))

        self.put(Lane("launch", COORDINATOR, process.actor), Item(register, process.actor))
        self.note(f"slot/{slot}", SlotLaunched(incarnation))

    def journal(self, entry: Entry) -> None:
        """Note the entry in the past of the part of which it tells."""
        if isinstance(entry, Built) and entry.actor != COORDINATOR:
            self._built(entry)
        elif isinstance(entry, Handled | Stamped) and entry.actor != self.acting:
            self.past.goes_through(entry.actor, self.past.parts.get(self.acting, 0))
        super().journal(entry)

    # What can happen.

    def living(self) -> list[SteppedSlot]:
        """The slots that are there, in order."""
        return list(self._living.values())

    def slot(self, actor: str) -> SteppedSlot:
        """A slot that lives, by its name."""
        return self._living[actor]

    def possible(self) -> list[Lane]:
        """The lanes from which a step can be taken, in no particular order."""
        self._drop_cancelled()
        lanes = list(self.lanes)
        for process in self._living.values():
            lanes += self._ready(process)
        return lanes

    def _drop_cancelled(self) -> None:
        """Remove timers that were cancelled or replaced: nothing follows from them."""
        for lane in [lane for lane in self.lanes if lane.kind == "timer"]:
            items = self.lanes[lane]
            while items and not self._is_set(lane, items[0].payload):
                items.popleft()
                self.past.waits(str(lane), -1)
            if not items:
                del self.lanes[lane]

    def _is_set(self, lane: Lane, alarm: object) -> bool:
        if isinstance(alarm, ProbeAlarm):
            boss = self.coordinator.engine
            now = alarm.epoch == boss.epoch == boss.epoch_asked
            return now and alarm.wave == boss.quiet.wave
        if not isinstance(alarm, TimerAlarm):
            return True
        if alarm.task is None:
            return self.coordinator.engine.timers.is_set(alarm.timer, alarm.generation)
        engine = self._living[lane.actor].engine
        known = (alarm.task, alarm.timer), alarm.generation
        return alarm.epoch == engine.epoch and engine.timers.is_set(*known)

    def _ready(self, process: SteppedSlot) -> dict[Lane, int]:
        """The inputs that a slot may take, with their places among them."""
        known = self._inputs.get(process.actor)
        if known is None:
            engine = process.engine
            ready = engine.ready() if engine.running and not engine.stopped else []
            known = {Lane(kind, process.actor, name): k for k, (kind, name) in enumerate(ready)}
            self._inputs[process.actor] = known
        return known

    def first(self, lane: Lane) -> object:
        """What waits first in a lane; None if it is an input that is read or sent again."""
        if lane.kind == "take":
            return self._living[lane.actor].engine.inputs.inbox[ChannelId(lane.name)][0]
        return self.lanes[lane][0].payload if lane in self.lanes else None

    def state(self) -> int:
        """A number that stands for the state of the world."""
        self._drop_cancelled()
        if self._thought:
            self._thought = False
            self.past.begins_anew(COORDINATOR, knowledge(self.coordinator.engine))
        orders = [
            item.number()
            for lane in sorted(lane for lane in self.lanes if lane.kind == "order")
            for item in self.lanes[lane]
        ]
        return hash((self.past.total, *orders))

    # Steps.

    def take(self, lane: Lane) -> None:
        """Let the first thing in a lane happen."""
        self.steps += 1
        if lane.kind == "timer":
            self._drop_cancelled()
        if lane.kind in INPUTS:
            self._take_input(lane)
        else:
            item = self.lanes[lane].popleft()
            self.past.waits(str(lane), -1)
            if not self.lanes[lane]:
                del self.lanes[lane]
            self._enter(lane, item)
            item.action()
            if isinstance(item.payload, Restore):
                self._restored(self._living[lane.actor])
        self._inputs.pop(lane.actor, None)
        if lane.actor == COORDINATOR:
            self._thought = True
            if self.coordinator.engine.epoch != self._epoch:
                self._new_epoch()

    def _take_input(self, lane: Lane) -> None:
        process = self._living[lane.actor]
        process.chosen = self._ready(process)[lane]
        edge = self.job.topology.by_id.get(lane.name)  # type: ignore[call-overload]
        task = lane.name if edge is None else edge.target if lane.kind == "take" else edge.source
        self._goes_on(task, lane)
        process.engine.step()

    def _enter(self, lane: Lane, item: Item) -> None:
        """Write into the past which part of the world this step belongs to."""
        payload = item.payload
        if lane.kind == "link":
            assert isinstance(payload, Frame)
            slot = self.past.parts.get(lane.actor, 0)
            self._goes_on(f"{lane} taken", lane, slot)
            if isinstance(payload.payload, Marker):
                self._goes_on(self.job.topology.by_id[payload.channel].target, lane)
        elif lane.kind == "store" and lane.actor != COORDINATOR:
            assert isinstance(payload, Ticket)
            self.acting = f"{lane.actor} {payload.task}@{payload.number}"
            self.past.gathers(self.acting, self.past.code(str(lane)))
        elif lane.kind == "timer" and isinstance(payload, TimerAlarm):
            self._count(lane, payload)
            self.acting = COORDINATOR
            if payload.task is not None:
                self._goes_on(payload.task, lane)
        elif lane.actor == COORDINATOR:
            self.acting = COORDINATOR  # `knowledge` stands for it, so no past is noted
        else:
            self._goes_on(lane.actor, lane)

    def _goes_on(self, part: str, lane: Lane, more: int = 0) -> None:
        self.acting = part
        self.past.goes_through(part, self.past.code(str(lane)) + more)

    def _count(self, lane: Lane, alarm: TimerAlarm) -> None:
        key = (lane.actor, lane.name, alarm.epoch)
        self.fired[key] = self.fired.get(key, 0) + 1

    # What a rollback makes of the past.

    def _drop(self, lanes: list[Lane]) -> None:
        for lane in lanes:
            self.past.waits(str(lane), -len(self.lanes.pop(lane)))

    def _new_epoch(self) -> None:
        """Remove lost slots from the past: what matters of them is what the coordinator knows."""
        self._epoch = self.coordinator.engine.epoch
        hosts = {process.slot for process in self._living.values()}
        for part in tuple(self.past.parts):
            task = self.job.slot_by_task.get(TaskId(part))
            old = part.startswith("slot/") and part.split(" ")[0] not in self._living
            if old or (task is not None and task not in hosts):
                self.past.ends(part)

    def _restored(self, process: SteppedSlot) -> None:
        """Drop what a restored slot was about to do in its last epoch, and begin its past anew."""
        actor, epoch = process.actor, process.engine.epoch
        for lane, items in tuple(self.lanes.items()):
            if lane.kind in ("store", "timer") and lane.actor == actor:
                kept = [item for item in items if item.payload.epoch == epoch]
                self._drop([lane])
                for item in kept:
                    self.put(lane, item)
        for part in [part for part in self.past.parts if actor in part.split(" ")]:
            self.past.ends(part)
        self.past.begins_anew(actor, self.past.code(f"{actor} in epoch {epoch}"))

    def _built(self, entry: Built) -> None:
        """Begin the past of a restored task anew: its checkpoint, and what is sent to it again."""
        process = self.current(self.job.slot_by_task[TaskId(entry.actor)])
        assert process is not None
        assert process.engine.restoration is not None
        order = process.engine.restoration.order
        again = [
            self.monitor.truth[part.channel][seq]
            for part in order.replay
            for seq in range(part.after + 1, part.through + 1)
        ]
        self.past.begins_anew(entry.actor, number_of(entry.actor, order, again))

    def crash(self, slot: SlotId) -> None:
        """Kill a slot; all that is on its way from it or to it is lost."""
        process = self.current(slot)
        assert isinstance(process, SteppedSlot)
        assert process.alive
        self.steps += 1
        self.crashes += 1
        self.acting = process.actor
        self.past.goes_through(process.actor, self.past.code("crash"))
        self.note(f"slot/{slot}", ProcessKilled(incarnation=process.incarnation))
        process.alive = False
        del self._living[process.actor]
        for life in process.lives:
            self.storage.logs.crash(life)
            if not self.job.protocol.publishes_at_once:
                self.storage.outlet.crash(life)
        self._drop([lane for lane in self.lanes if process.actor in (lane.actor, lane.name)])
        self._inputs.pop(process.actor, None)
        lost = Item(lambda: self.report_lost(process), process.actor)
        self.put(Lane("detect", COORDINATOR, process.actor), lost)


def knowledge(boss: Coordinator) -> int:
    """A number for all that a coordinator knows, whichever way it came to know it."""
    decider, members = boss.decider, boss.members
    writing = decider.writing
    return number_of(
        {name: value for name, value in vars(boss.protocol).items() if name != "context"},
        (boss.epoch, boss.epoch_asked, boss.restoring, boss.ended, boss.memo, boss.final),
        (boss.registry.metas, boss.registry.pruned, boss.registry.aborted, boss.quiet, boss.timers),
        (members.incarnations, members.registered, members.awaited, members.rejoining),
        members.alone,
        (
            decider.number,
            decider.chains,
            decider.kept,
            decider.held,
            decider.public,
            decider.waiting,
        ),
        None if writing is None else (writing.decision, writing.durable, writing.unpublished),
    )
