"""What a run may lose at most: by its policies, its input and the faults that struck."""

import random
from dataclasses import replace

import numpy as np
import pytest

from snapline.chaos.strikes import Strike
from snapline.core.guarantee import Guarantee
from snapline.core.messages import END_OF_TIME
from snapline.core.policy import Intake, Policy
from snapline.core.protocol import Options
from snapline.dataflow.deploy import deploy
from snapline.dataflow.graph import Dataflow
from snapline.engine.job import Job, Settings
from snapline.ids import INITIAL, TaskId
from snapline.journal.loss_happenings import GroupLost, TaskLoss
from snapline.kernels.routing import target_of
from snapline.loss.bound import Allowances, Blow, Bound, StruckFaults, merged, struck_by
from snapline.loss.declared import Lost, settle
from snapline.loss.excuses import DeclaredExcuses, TaskPlace, input_ends_ms, places_of
from snapline.protocols.none import NONE
from snapline.workload.common.base import Params
from snapline.workload.common.losses import Stay, stay_of
from snapline.workload.counting.model import records

ALLOWED = Allowances(
    lag_ms=100, detection_ms=200, restart_ms=300, save_ms=50, lease_ms=80, driver_ms=900
)
SAVING = replace(NONE, saves=True)  # stands for a protocol that saves tasks one by one
KEEPING = replace(SAVING, heeds_policies=True)  # ... and keeps input for them


def job_of(
    protocol=NONE,
    *,
    every_ms=None,
    saved=None,
    pools=None,
    lean=False,
    intake=Intake.DROP,
    versions=2,
):
    flow = Dataflow("small")
    stream = flow.source(records(Params(partitions=2, records=100, duration_ms=1_000)), name="in")
    counted = stream.key_by("key").count(name="count")
    if pools:
        counted = counted.pool("model")
    counted.sink("out")
    deployment = deploy(flow, 2, lean=lean, pools=pools or {})
    policy = Policy(saved=saved, every_ms=every_ms, intake=intake, versions=versions)
    plans = {
        task: replace(plan, policy=replace(policy, saved=plan.stateful if saved is None else saved))
        for task, plan in deployment.plans.items()
    }
    settings = Settings(credit=2, batch_max_records=3)
    return Job(
        "small",
        replace(deployment, plans=plans),
        protocol,
        Options(interval_ms=400),
        Guarantee.BOUNDED_LOSS,
        settings,
    )


def bound_of(faults, job=None):
    job = job or job_of()
    strikes = [Strike(statement, at_ms is not None, at_ms) for statement, at_ms in faults]
    return Bound(job, struck_by(strikes, job), ALLOWED)


def loss(task, from_ms, to_ms):
    return TaskLoss(TaskId(task), INITIAL, from_ms, to_ms)


# Which faults take what away.


@pytest.mark.parametrize(
    ("statement", "slots", "away", "holds"),
    [
        ("kill slot=1 at=500ms", {1}, 0, None),
        ("kill slot=0,1 at=500ms for=2s", {0, 1}, 2_000, None),
        ("kill executor=1 at=500ms", {0, 1}, 0, None),
        ("launch slow slot=1 30ms at=500ms for=1s", {1}, 0, None),
        ("kill coordinator at=500ms for=70ms", {0, 1}, 70, 70),
        ("kill driver at=500ms", {0, 1}, 0, 0),
        ("pause slot=0 at=500ms for=1s", {0}, 0, 1_000),
        ("cut slot=0 from=1 at=500ms for=1s", {0, 1}, 0, 1_000),
        ("cut slot=1 from=coordinator at=500ms", {1}, 0, 0),
    ],
)
def test_a_fault_that_struck_takes_slots_away(statement, slots, away, holds):
    bound = bound_of([(statement, 510)])
    of_driver = statement.startswith("kill driver")
    blow = Blow(statement, frozenset(slots), 510, away, holds, of_driver=of_driver)
    assert bound.struck.blows == (blow,)


def test_after_the_death_of_its_driver_spark_has_to_start_anew():
    for statement, within_ms in (("kill driver at=1s", 1_400), ("kill slot=0,1 at=1s", 500)):
        bound = bound_of([(statement, 1_000)])
        assert bound.back_within_ms(bound.struck.blows[0]) == within_ms


def test_other_faults_only_hold_the_job_up_and_damage_costs_a_checkpoint():
    faults = [
        "store slow 30ms at=1s for=200ms",
        "damage slot=1 at=1s",
        "store outage at=1s for=5ms",
    ]
    bound = bound_of([(fault, 1_000) for fault in faults])
    assert bound.struck == StruckFaults((), 235, ((1, 1_000),))
    assert bound_of([("kill slot=1 at=9s", None)]).struck == StruckFaults((), 0, ())


def test_the_slots_of_a_pool_are_struck_by_its_name():
    job = job_of(pools={"model": 2})
    assert bound_of([("kill pool=model at=1s", 1_000)], job).struck.blows[0].slots == {2, 3}


# How far a loss may reach.


def test_an_operator_without_state_loses_only_what_was_under_way():
    assert bound_of([]).interval_ms(TaskId("in/0"), 900, 950) == 0
    assert bound_of([]).interval_ms(TaskId("count/0"), 900, 950) is None


@pytest.mark.parametrize(("every_ms", "interval_ms"), [(None, 450), (70, 120)])
def test_an_operator_that_is_saved_loses_an_interval(every_ms, interval_ms):
    job = job_of(SAVING, every_ms=every_ms)
    assert bound_of([], job).interval_ms(TaskId("count/1"), 900, 950) == interval_ms
    unsaved = bound_of([], job_of(SAVING, saved=False))
    assert unsaved.interval_ms(TaskId("count/1"), 900, 950) is None


def test_damage_costs_the_checkpoints_that_may_build_on_it_or_all_of_them():
    """400 ms apart: at most one checkpoint comes in the 10 ms from the damage to the death."""

    def interval_ms(faults, versions, death_ms=1_010, slot=1, back_ms=None):
        job, task = job_of(SAVING, versions=versions), TaskId(f"count/{slot}")
        return bound_of(faults, job).interval_ms(task, death_ms, back_ms or death_ms)

    damage = [("damage slot=1 at=1s", 1_000)]
    assert interval_ms(damage, 2) is None, "both that are kept"
    assert interval_ms(damage, 3) == 450 + 2 * 400
    assert interval_ms(damage, 3, death_ms=1_400) is None
    assert interval_ms(damage, 3, death_ms=999) == 450, "it is damaged later"
    assert interval_ms(damage, 2, death_ms=600, back_ms=1_000) is None, "while it was away"
    assert interval_ms(damage, 3, death_ms=600, back_ms=1_000) == 450 + 2 * 400
    assert interval_ms(damage, 2, slot=0) == 450, "that of another slot is damaged"
    resumed = [*damage, ("kill coordinator at=500ms for=70ms", 500)]
    assert interval_ms(resumed, 3) is None, "a resume knows one checkpoint of each task"
    assert interval_ms(resumed, 3, death_ms=490, back_ms=1_000) is None, "also while it was away"


def test_whoever_waits_for_a_slot_lags_as_long_as_it_is_away():
    kill = [("kill slot=1 at=500ms for=1s", 500)]
    assert bound_of(kill).lag_ms == 100
    assert bound_of(kill, job_of(KEEPING, intake=Intake.WAIT)).lag_ms == 100 + 1_500


def test_the_bound_counts_what_was_due_and_what_was_under_way():
    """Both sources have a record every 10 ms; a slot has channels of 2 x 3 records to and from it."""
    job = job_of(SAVING)
    bound = bound_of([("kill slot=1 at=700ms", 700)], job)
    channels = sum(
        "/1" in channel.source or "/1" in channel.target for channel in job.topology.channels
    )
    assert channels == 4
    due = 2 * (100 - 15)  # from 700 - 100 - 450 on, all there is
    assert bound.records() == due + channels * 6
    assert bound_of([("kill slot=1 at=700ms", 700)]).records() == 200, "state since the start"
    assert bound_of([]).records() == 0


def test_stretches_that_overlap_are_one():
    assert merged([(5, 9), (0, 2), (8, 12), (2, 3)]) == [(0, 3), (5, 12)]


# Which blow a loss follows.


def died(faults, slot, after_ms, to_ms):
    end = bound_of(faults).end_of(slot, after_ms, to_ms)
    return None if end is None else end.death_ms


def test_a_loss_follows_the_blow_to_its_slot():
    kill = [("kill slot=1 at=500ms", 500)]
    assert died(kill, 1, 0, 900) == 500
    assert died(kill, 1, 0, 1_000) == 500, "with all allowances"
    assert died(kill, 1, 0, 1_001) is None
    assert died(kill, 1, 0, 499) is None
    assert died(kill, 1, 600, 900) is None, "the blow was paid for"
    assert died(kill, 0, 0, 900) is None


def test_of_several_blows_before_a_slot_is_back_the_first_counts():
    faults = [("kill slot=1 at=500ms", 500), ("kill slot=1 on=recovery", 900)]
    assert died(faults, 1, 0, 1_200) == 500
    assert died(faults, 1, 700, 1_200) == 900
    apart = [("kill slot=1 at=100ms", 100), ("kill slot=1 at=900ms", 900)]
    assert died(apart, 1, 0, 1_200) == 900


def test_a_life_may_be_let_go_that_is_dead_already_but_each_loss_needs_a_blow_of_its_own():
    """The second kill strikes before the slot is let go, and is noticed only afterwards."""
    twice = [("kill slot=1 at=500ms", 500), ("kill slot=1 on=recovery", 640)]
    declared = [loss("in/1", 500, 650), loss("in/1", 650, 800)]
    assert not settle(declared, bound_of(twice)).problems
    assert len(settle(declared, bound_of(twice[:1])).problems) == 1
    third = [*declared, loss("in/1", 800, 900)]
    assert len(settle(third, bound_of(twice)).problems) == 1


def test_a_task_that_dies_before_its_next_checkpoint_goes_back_to_the_same_one():
    """Checkpoints are 400 ms apart, and one counts within 50 ms; the task is let go at 800 ms."""
    job = job_of(SAVING)
    twice = [("kill slot=1 at=500ms", 500), ("kill slot=1 at=1100ms", 1_100)]
    first = loss("count/1", 100, 800)
    assert not settle([first, loss("count/1", 100, 1_300)], bound_of(twice, job)).problems
    late = [twice[0], ("kill slot=1 at=1300ms", 1_300)]
    assert len(settle([first, loss("count/1", 100, 1_500)], bound_of(late, job)).problems) == 1
    assert len(settle([first, loss("count/1", 99, 1_300)], bound_of(twice, job)).problems) == 1


def test_a_slot_that_came_back_meanwhile_can_still_be_given_up():
    """A coordinator that dies takes all slots with it later, also one that has just been let go."""
    faults = [("kill slot=1 at=450ms", 450), ("kill coordinator at=500ms for=70ms", 500)]
    assert died(faults, 1, 0, 540) == 450
    assert died(faults, 1, 540, 900) == 540
    assert died(faults, 1, 500 + 70 + 200 + 80, 900) == 850, "until it must have noticed"
    assert died(faults, 1, 500 + 70 + 200 + 81, 900) is None


def test_nobody_waited_before_a_blow_for_the_slot_that_it_struck():
    job = job_of(KEEPING, intake=Intake.WAIT)
    bound = bound_of([("kill slot=1 at=500ms for=1s", 500)], job)
    assert [bound.lag_before(at_ms) for at_ms in (500, 501)] == [100, 1_600]


def test_losses_are_settled_or_refused():
    bound = bound_of([("kill slot=1 at=500ms", 500)], job_of(SAVING))
    fine = [loss("count/1", 100, 900), loss("in/1", 0, 900)]
    settled = settle(fine, bound)
    assert [each.death_ms for each in settled.losses] == [500, 500]
    assert settled.problems == ()
    for wrong, why in [
        (loss("count/0", 100, 900), "no fault struck slot 0"),
        (loss("count/1", 49, 900), "at most 450 ms apart"),
        (loss("count/1", 100, 1_100), "was due by 1,000 ms"),
        (loss("other/1", 100, 900), "no such task"),
    ]:
        (problem,) = settle([wrong], bound).problems
        assert why in problem.because
    again = settle([loss("count/1", 100, 800), loss("count/1", 100, 900)], bound)
    assert len(again.losses) == len(again.problems) == 1, "one blow explains one loss of a task"


# What losses touch.


def touched(job, losses, stay, *, late=False):
    bound = bound_of([("kill slot=1 at=500ms", 500)], job)
    excuses = DeclaredExcuses(settle(losses, bound).losses, places_of(job.deployment), 100)
    assert excuses.nothing_lost == (not losses)
    return (excuses.late if late else excuses.touched)(stay).tolist()


def ints(*values):
    return np.array(values, np.int64)


def test_what_came_while_a_source_was_away_is_touched():
    stay = stay_of(("in",), ints(399, 400, 800, 801, 600), partition=ints(1, 1, 1, 1, 0))
    job, lost = job_of(), [loss("in/1", 0, 800)]
    assert touched(job, lost, stay) == [False, True, True, False, False]
    assert touched(job, lost, stay, late=True) == [False, True, True, True, False]
    assert touched(job, [], stay) == [False] * 5


def test_what_a_checkpoint_held_or_was_put_out_before_is_not_touched():
    """Of a task that went back to 300 ms: with the lag, what came from 200 ms on, if still needed."""
    came, until = ints(199, 200, 200, 900), ints(900, 900, 399, 900)
    stay = stay_of(("count",), came, partition=ints(1, 1, 1, 1), until=until)
    lost = [loss("count/1", 300, 800)]
    assert touched(job_of(SAVING), lost, stay) == [False, True, False, False]


def test_what_is_gathered_is_touched_if_any_part_of_it_was_lost():
    stay = Stay(("count",), None, ints(1, 1), ints(0, 900), ints(600, 950), ints(600, 950))
    assert touched(job_of(SAVING), [loss("count/1", 300, 800)], stay) == [True, False]


def test_rows_find_their_task_as_records_do():
    job, rng = job_of(), random.Random(3)
    keys = ints(*(rng.randrange(1 << 40) for _ in range(50)))
    stay = stay_of(("count", "out"), np.full(50, 600), key=(keys,))
    expected = [target_of(key, 2) == 1 for key in keys.tolist()]
    assert touched(job, [loss("out/1", 0, 800)], stay) == expected


@pytest.mark.parametrize("lean", [False, True])
def test_operators_of_a_chain_are_found_under_its_name(lean):
    places = places_of(job_of(lean=lean).deployment)
    assert places["count"].tasks == ("out" if lean else "count")
    assert places["out"].slots == (0, 1)


def test_in_a_pool_of_another_size_a_row_may_be_anywhere():
    """Batches go to its tasks in turn, so nobody knows to which of them a record went."""
    lost = Lost(TaskId("in/1"), 1, 0, 500, 800, lag_ms=100)
    places = {"other": TaskPlace("other", (2,)), "in": TaskPlace("in", (0, 1))}
    stay = stay_of(("other", "in"), ints(600, 900), key=(ints(1, 2),))
    assert DeclaredExcuses([lost], places, 100).touched(stay).tolist() == [True, False]


# What may come again.


def repeated(stay, statement, *, intake=Intake.DROP, task="count/1"):
    job = job_of(KEEPING, intake=intake, saved=True)
    bound = bound_of([(statement, 500)], job)
    settled = settle([loss(task, 300, 800)], bound)
    assert not settled.problems
    excuses = DeclaredExcuses(settled.losses, places_of(job.deployment), 100)
    return excuses.repeated(stay).tolist()


def test_what_a_task_made_of_kept_input_since_its_checkpoint_may_come_again():
    """Of a task that went back to 300 ms, and was struck at 500 ms; with the lag, from 200 ms on."""
    stay = stay_of(("count",), ints(199, 200, 500, 501, 400), partition=ints(1, 1, 1, 1, 0))
    kill = "kill slot=1 at=500ms"
    assert repeated(stay, kill, intake=Intake.KEEP) == [False, True, True, False, False]
    for intake in (Intake.DROP, Intake.WAIT):
        assert repeated(stay, kill, intake=intake) == [False] * 5, "nobody sends it again"


def test_what_waits_in_a_task_comes_again_only_if_it_was_put_out():
    """State that went back does not repeat what becomes of it later."""
    stay = stay_of(("count",), ints(250, 250), partition=ints(1, 1), until=ints(450, 900))
    assert repeated(stay, "kill slot=1 at=500ms", intake=Intake.KEEP) == [True, False]


def test_a_task_without_state_goes_back_as_far_as_its_checkpoints_may_lie():
    """It declares when it was lost, not when it was saved: 400 ms apart, and 50 until they count."""
    stay = stay_of(("in",), ints(0, 50, 500, 501), partition=ints(1, 1, 1, 1))
    kill = "kill slot=1 at=500ms"
    assert repeated(stay, kill, intake=Intake.KEEP, task="in/1") == [True, True, True, False]
    job = job_of(KEEPING, intake=Intake.KEEP, saved=True, every_ms=70)
    bound = bound_of([(kill, 500)], job)
    (lost,) = settle([loss("in/1", 300, 800)], bound).losses
    assert lost.again == (500 - 70 - 50, 500)


@pytest.mark.parametrize(
    ("statement", "last_ms"),
    [
        ("pause slot=1 at=500ms for=30ms", 500 + 30 + 200 + 80),
        ("cut slot=1 from=0 at=500ms for=30ms", 500 + 30 + 200 + 80),
        ("kill coordinator at=500ms for=30ms", 500 + 30 + 200 + 80),
        ("pause coordinator at=500ms for=30ms", 500 + 30 + 400 + 50 + 200 + 80),
    ],
)
def test_a_slot_that_lingers_repeats_until_its_lease_has_lapsed(statement, last_ms):
    lag_ms = 100 + 30
    came = ints(500 - lag_ms - 1, 500 - lag_ms, last_ms, last_ms + 1)
    stay = stay_of(("in",), came, partition=ints(1, 1, 1, 1))
    assert repeated(stay, statement, task="in/1") == [False, True, True, False]


def test_a_slot_that_died_repeats_nothing():
    stay = stay_of(("in",), ints(450, 500, 600), partition=ints(1, 1, 1))
    for statement in ("kill slot=1 at=500ms", "kill executor=1 at=500ms"):
        assert repeated(stay, statement, task="in/1") == [False] * 3


# The end of the input.


def test_what_closes_with_the_end_of_the_input_is_not_later_than_that():
    """A window through 5,000 ms is put out when the last record, due at 990 ms, has come."""
    job = job_of()
    assert input_ends_ms(job.deployment) == 990
    stay = stay_of(("count",), np.array([5_000]), key=(np.array([0]),))
    slot = target_of(0, 2)
    for ends_ms, expected in ((990, True), (END_OF_TIME, False)):
        lost = Lost(TaskId(f"count/{slot}"), slot, 900, 950, 1_200, 100, (900, 1_100))
        excuses = DeclaredExcuses([lost], places_of(job.deployment), 100, ends_ms)
        assert excuses.touched(stay).tolist() == [expected]
        assert excuses.repeated(stay).tolist() == [expected]


# Groups of rows that could not be read.


def test_a_group_that_could_not_be_read_may_have_held_rows_of_any_age():
    job = job_of(SAVING, saved=True, every_ms=100, versions=9)
    struck = [("damage slot=1 at=400ms", 400), ("kill slot=1 at=500ms", 500)]
    told = [loss("count/1", 380, 700), GroupLost(TaskId("count/1"), "rows", 64)]
    for declared, from_ms in ((told, 0), (told[:1], 380)):
        settled = settle(declared, bound_of(struck, job))
        assert [each.from_ms for each in settled.losses] == [from_ms]
        assert settled.problems == ()


@pytest.mark.parametrize(
    "damage", [[], [("damage slot=0 at=400ms", 400)], [("damage slot=1 at=900ms", 900)]]
)
def test_a_group_that_nobody_damaged_can_be_read(damage):
    job = job_of(SAVING, saved=True, every_ms=100, versions=9)
    told = [loss("count/1", 380, 700), GroupLost(TaskId("count/1"), "rows", 64)]
    (problem,) = settle(told, bound_of([*damage, ("kill slot=1 at=500ms", 500)], job)).problems
    assert "a group of its rows was lost, but nothing of slot 1 was damaged" in problem.because
