"""Who is missing is launched, when it is time; with a clock that stands still unless it is moved."""

from types import SimpleNamespace

from snapline.runtime.driver.launches import Launches
from snapline.runtime.driver.restart import ProcessFailure, RestartPolicy, RestartStrategy
from snapline.runtime.driver.roster import Roster, Timeouts


class Clock:
    """Alarms that ring when time is let pass."""

    def __init__(self):
        self.now_s = 0.0
        self.alarms = []

    def after(self, delay_s, action):
        self.alarms.append((self.now_s + delay_s, action))

    def pass_until(self, then_s):
        while due := [alarm for alarm in self.alarms if alarm[0] <= then_s]:
            first = min(due, key=lambda alarm: alarm[0])
            self.alarms.remove(first)
            self.now_s = max(self.now_s, first[0])
            first[1]()
        self.now_s = then_s


class Launcher:
    """Counts, and fails as often as it is told to."""

    def __init__(self):
        self.launched = []
        self.roles = []
        self.cancelled = []
        self.refusals = 0

    def launch(self, role):
        if self.refusals:
            self.refusals -= 1
            raise OSError("no more processes")
        self.roles.append(role)
        self.launched.append(f"job-{len(self.launched)}")
        return self.launched[-1]

    def cancel(self, tag):
        self.cancelled.append(tag)


class Staff:
    """Two slots, all of them wanted, as at the first start."""

    def __init__(self, spares=0, failures=10):
        self.roster = Roster(2, spares)
        self.roster.unmanned.extend([(0, 1), (1, 1)])
        self.strategy = RestartStrategy(RestartPolicy(failures), lines=True)
        self.begun = self.finished = False
        self.next_epoch = 1
        self.told = []
        self.ended = None
        self.clock, self.launcher = Clock(), Launcher()
        self.launches = Launches(
            self, self.launcher, Timeouts(), self.clock.after, lambda: self.clock.now_s
        )
        self.launches.fill()

    def tell(self, reason):
        self.told.append(reason)

    def give_up(self, end):
        self.ended = end.story
        self.finished = True

    def register(self, role, life=None):
        """A process comes, and is made a life or a spare."""
        tag, started_s = self.launches.registered(role)
        if self.roster.wanted:
            life = self.roster.take(self.launches.meant(tag))
        member = SimpleNamespace(life=life, tag=tag, started_s=started_s)
        self.roster.members[id(member)] = member
        return member

    def run(self):
        """All slots come and run."""
        for tag in tuple(self.launches.awaited):
            self.register(tag)
        self.begun = True


def test_as_many_are_launched_as_are_missing_and_never_more():
    staff = Staff(spares=1)
    for _ in range(3):
        staff.launches.fill()
    assert staff.launcher.launched == ["job-0", "job-1"], "the spare comes when slots run"
    staff.run()
    for _ in range(3):
        staff.launches.fill()
    staff.clock.pass_until(59)
    assert staff.launcher.launched == ["job-0", "job-1", "job-2"]
    assert staff.launcher.roles == ["slot 0/epoch 1", "slot 1/epoch 1", "spare/epoch 1"]
    assert (staff.told, staff.ended) == ([], None)


def test_a_process_becomes_the_slot_after_which_its_job_is_called_in_whatever_order_they_come():
    staff = Staff()
    assert staff.register("job-1").life == (1, 1)
    staff.launches.ended("job-0", "killed by signal 9")
    staff.clock.pass_until(0.01)
    assert staff.launcher.roles[2:] == ["slot 0/epoch 1"]
    assert staff.register("job-2").life == (0, 1)
    staff.begun, staff.next_epoch = True, 2
    staff.roster.unmanned.extend([(0, 2), (1, 2)])
    staff.launches.fill()
    assert staff.launcher.roles[3:] == ["slot 0/epoch 2", "slot 1/epoch 2"]
    assert staff.register("job-1").life == (1, 2), "Spark has tried its task again"
    assert staff.register("job-4").life == (0, 2), "somebody else took its place"


def test_who_ends_before_it_registers_is_replaced_at_once_and_then_ever_later():
    staff = Staff()
    staff.launches.ended("job-0", "killed by signal 9")
    staff.clock.pass_until(0.01)
    assert staff.launcher.launched == ["job-0", "job-1", "job-2"]
    staff.launches.ended("job-2", "killed by signal 9")
    staff.clock.pass_until(0.05)
    assert len(staff.launcher.launched) == 3, "not yet"
    staff.clock.pass_until(0.2)
    assert len(staff.launcher.launched) == 4
    assert staff.told == ["killed by signal 9 before it registered"] * 2


def test_a_launch_that_fails_is_tried_again():
    staff = Staff()
    staff.run()
    staff.launcher.refusals = 3
    staff.roster.unmanned.append((0, 2))
    staff.launches.failed(ProcessFailure("job-0", "killed", 0.0))
    staff.clock.pass_until(5)
    assert staff.launcher.launched == ["job-0", "job-1", "job-2"]
    assert staff.told == ["a process could not be launched: OSError: no more processes"] * 3


def test_who_does_not_register_in_time_is_cancelled_and_replaced_and_welcome_if_it_comes():
    staff = Staff()
    staff.run()
    staff.clock.pass_until(100)
    staff.roster.members.popitem()
    staff.roster.unmanned.append((0, 2))
    staff.launches.failed(ProcessFailure("job-0", "killed", 0.0))
    staff.clock.pass_until(159)
    assert (staff.launcher.launched[2:], staff.launcher.cancelled) == (["job-2"], [])
    staff.clock.pass_until(161)
    assert (staff.launcher.launched[2:], staff.launcher.cancelled) == (
        ["job-2", "job-3"],
        ["job-2"],
    )
    staff.launches.ended("job-2", "cancelled")
    assert not staff.roster.superfluous(staff.register("job-2"))
    staff.launches.fill()
    assert staff.roster.vacant() == (0, 0)
    assert staff.roster.superfluous(staff.register("job-3")), "it comes too late"
    assert (staff.told, staff.ended) == (["a process did not register within 60 s"], None)


def test_a_slot_that_is_missing_a_minute_after_the_start_ends_nothing():
    """Once there was an alarm for this moment, whatever had happened since the start."""
    staff = Staff()
    staff.clock.pass_until(10)
    staff.run()
    staff.clock.pass_until(55)
    staff.roster.unmanned.append((0, 2))
    staff.launches.failed(ProcessFailure("job-0", "killed", 0.0))
    staff.clock.pass_until(110)
    assert staff.ended is None


def test_at_the_first_start_too_few_cores_are_said_when_a_process_has_waited_long_enough():
    staff = Staff()
    staff.register("job-0")
    staff.clock.pass_until(59)
    assert staff.ended is None
    staff.clock.pass_until(60)
    assert staff.ended == (
        "only 1 of 2 slots have started within 60 s: ask for fewer slots, or give Spark more cores"
    )


def test_a_spare_that_never_comes_ends_nothing_and_is_tried_again():
    staff = Staff(spares=1, failures=2)
    staff.run()
    staff.launches.fill()
    for second in range(20):
        staff.clock.pass_until(15.0 * second)
        for tag in tuple(staff.launches.awaited):
            staff.launches.ended(tag, "Spark could not run it")
    assert staff.ended is None
    assert len(staff.launcher.launched) > 10


def test_a_tag_is_found_among_those_of_the_user():
    staff = Staff()
    staff.clock.pass_until(3)
    member = staff.register("mine,job-1")
    assert (member.tag, member.started_s) == ("job-1", 0.0)
    assert list(staff.launches.awaited) == ["job-0"]


def test_a_copy_of_a_living_process_is_not_sent_away_or_spark_would_end_both():
    staff = Staff()
    staff.run()
    assert not staff.roster.superfluous(staff.register("mine,job-1"))
    assert staff.roster.superfluous(staff.register("somebody else's"))


def test_why_a_registered_process_died_is_learned_from_who_launched_it():
    staff = Staff(failures=2)
    staff.run()
    staff.roster.unmanned.append((0, 2))
    staff.launches.failed(ProcessFailure("job-0", "its connection broke", 0.0))
    staff.launches.ended("job-0", "killed by signal 9")
    staff.clock.pass_until(1)
    staff.launches.ended("job-2", "another reason")
    assert staff.ended.startswith("killed by signal 9; in 1 s 2 processes failed")


def test_a_slot_that_is_kept_away_gets_no_process_until_all_let_it_back():
    staff = Staff(spares=1)
    staff.run()
    staff.launches.fill()
    spare = staff.register("job-2")
    staff.roster.away[1] += 2
    staff.roster.unmanned.append((1, 2))
    staff.clock.pass_until(5)
    assert staff.roster.wanted == []
    assert staff.roster.idle() == [spare]
    assert len(staff.launcher.launched) == 3
    assert not staff.roster.let_back(1)
    assert staff.roster.let_back(1)
    assert staff.roster.wanted == [(1, 2)]


def test_a_slot_that_is_to_leave_has_one_more_spare_until_it_has_left():
    staff = Staff()
    staff.run()
    staff.roster.leaving[1, 1] = None
    for _ in range(2):
        staff.launches.fill()
    assert staff.launcher.roles[2:] == ["spare/epoch 1"]
    successor = staff.register("job-2")
    staff.launches.fill()
    assert staff.roster.idle() == [successor]
    assert not staff.roster.superfluous(successor)
    staff.roster.leaving.clear()
    staff.launches.fill()
    assert len(staff.launcher.launched) == 3
