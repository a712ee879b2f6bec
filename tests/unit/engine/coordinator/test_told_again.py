"""A slot that restarts alone is told again if a checkpoint cannot be read: it goes when that is done."""

from dataclasses import replace

from engine_fakes import ShellSpy, job, meta
from snapline.core.guarantee import Guarantee
from snapline.dataflow.deploy import deploy
from snapline.engine.control import Go, Restore, Restored, Stored, Unreadable
from snapline.engine.coordinator.coordinator import Coordinator
from snapline.ids import TaskId
from snapline.journal.happenings import ReportFenced
from snapline.protocols.partial import PARTIAL
from snapline.rundir.program import find_program
from snapline.rundir.spec import Spec

COUNT = TaskId("count/0")


class Scene:
    """A coordinator of one slot, and a store that takes whatever it is given."""

    def __init__(self):
        self.shell = Answering()
        small = job(PARTIAL, guarantee=Guarantee.BOUNDED_LOSS)
        flow = find_program(Spec("counting", slots=1)).flow
        self.boss = Coordinator(replace(small, deployment=deploy(flow, 1)), self.shell, "me")
        self.boss.start()
        self.settle()

    def settle(self):
        """Let every decision be durable; return the orders that were given."""
        orders = []
        while calls := self.shell.taken():
            for name, *arguments in calls:
                if name == "decide":
                    self.boss.done(arguments[0])
                elif name == "send":
                    orders.append(arguments[2])
        return orders

    def says(self, incarnation, report):
        self.boss.report(0, incarnation, report)
        return self.settle()


class Answering(ShellSpy):
    """A shell that knows the time, and writes down what was turned away."""

    def __init__(self):
        super().__init__()
        self.fenced = []

    def now_us(self):
        return 0

    def note(self, actor, epoch, what):
        if isinstance(what, ReportFenced):
            self.fenced.append(what)

    def journal(self, entry):
        pass


def restarting():
    """Slot 0 has three checkpoints, is lost, and its next life is told to restore the newest."""
    scene = Scene()
    scene.boss.registered_slot(0, 1)
    scene.settle()
    assert [type(order) for order in scene.says(1, Restored(1))] == [Go]
    for number in (4, 6, 7):
        scene.says(1, Stored(1, meta(COUNT, number, epoch=1, incarnation=1)))
    scene.boss.lost(0, 1)
    scene.settle()
    scene.boss.registered_slot(0, 2)
    (first,) = scene.settle()
    assert isinstance(first, Restore)
    return scene, first


def newest(order):
    return [chain[-1].checkpoint for chain in order.chains.values() if chain]


def test_orders_within_an_epoch_are_numbered():
    scene, first = restarting()
    (second,) = scene.says(2, Unreadable(1, COUNT, 7))
    assert [(newest(order), order.number) for order in (first, second)] == [([7], 0), ([6], 1)]


def test_what_answers_an_order_that_was_overtaken_does_not_let_a_slot_go():
    """7 and 6 could not be read. Told to go back to 6, the slot can; by then it is to go back to 4."""
    scene, _ = restarting()
    scene.says(2, Unreadable(1, COUNT, 7))
    (third,) = scene.says(2, Unreadable(1, COUNT, 6))
    assert (newest(third), third.number) == ([4], 2)
    assert scene.says(2, Restored(1, number=1)) == []
    assert scene.shell.fenced == [ReportFenced(0, 2, "Restored")]
    assert [type(order) for order in scene.says(2, Restored(1, number=2))] == [Go]


def test_the_next_life_is_told_for_the_first_time():
    scene, _ = restarting()
    scene.says(2, Unreadable(1, COUNT, 7))
    scene.boss.lost(0, 2)
    scene.settle()
    scene.boss.registered_slot(0, 3)
    (order,) = scene.settle()
    assert (newest(order), order.number) == ([6], 0)
    assert order.alone
    assert [type(told) for told in scene.says(3, Restored(1))] == [Go]
