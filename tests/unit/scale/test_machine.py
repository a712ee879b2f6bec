"""The cores that simulated slots share."""

from snapline.sim.world.machine import SLICE_US, Machine


class Clock:
    """Runs planned actions in order of time."""

    def __init__(self):
        self.now_us = 0
        self.planned = []

    def at(self, at_us, action):
        self.planned.append((at_us, len(self.planned), action))

    def run(self):
        while self.planned:
            self.planned.sort(key=lambda each: each[:2])
            self.now_us, _, action = self.planned.pop(0)
            action()


def begun(cores, works):
    """When each piece of work begins; all are asked for at the beginning."""
    clock, found = Clock(), []
    machine = Machine(clock, cores)

    def work(us):
        def begin():
            found.append(clock.now_us)
            return us

        return begin

    for us in works:
        machine.run(work(us))
    clock.run()
    return found


def test_work_waits_for_a_core_in_the_order_in_which_it_was_asked_for():
    assert begun(1, [10, 20, 30]) == [0, 10, 30]
    assert begun(2, [10, 30, 5, 5]) == [0, 0, 10, 15]


def test_with_as_many_cores_as_anybody_asks_for_nothing_waits():
    assert begun(None, [10, 20, 30]) == [0, 0, 0]


def ended(cores, works):
    clock, found = Clock(), {}
    machine = Machine(clock, cores)
    for number, us in enumerate(works):
        machine.occupy(us, lambda number=number: found.setdefault(number, clock.now_us))
    clock.run()
    return [found[number] for number in range(len(works))]


def test_long_work_is_cut_into_slices_so_that_short_work_gets_its_turn():
    long, short = 10 * SLICE_US, SLICE_US
    assert ended(1, [long, short]) == [long + short, 2 * SLICE_US]


def test_long_work_takes_as_long_on_a_core_of_its_own():
    assert ended(2, [10 * SLICE_US, 10 * SLICE_US]) == [10 * SLICE_US] * 2
    assert ended(None, [70, 0]) == [70, 0]


def test_two_long_works_on_one_core_take_twice_as_long_together():
    first, second = ended(1, [10 * SLICE_US, 10 * SLICE_US])
    assert (first, second) == (19 * SLICE_US, 20 * SLICE_US)
