"""When faults strike: decided by what whoever breaks things says of the time and of what happened."""

import random

from snapline.chaos.faults import Fault, parse
from snapline.chaos.schedule import Moment, Schedule

SPANS = {"recovery": 500_000, "round": 20_000}


def planned(text: str, soonest_us: int = 0) -> Schedule:
    return Schedule(parse(text), random.Random(1), SPANS, soonest_us)


def struck(schedule: Schedule, *moments: Moment) -> list[str]:
    """What strikes at each of these moments; empty if nothing does."""
    due = [schedule.happened(moment) for moment in moments]
    return [str(found.fault) if found else "" for found in due]


def test_what_has_a_time_is_due_then_once_and_in_order_of_time():
    schedule = planned(
        "kill driver at=2s; kill slot=0 at=1s; kill slot=1 at=1s; kill slot=2 on=round"
    )
    texts = [list(map(str, schedule.due(now_ms))) for now_ms in (999, 1_500, 1_500, 2_000)]
    assert texts == [[], ["kill slot=0 at=1s", "kill slot=1 at=1s"], [], ["kill driver at=2s"]]
    assert (schedule.timed, schedule.waits) == (False, True)


def test_each_recovery_lets_one_fault_strike_that_waits_for_it():
    schedule = planned("kill slot=0 on=recovery; kill slot=1 on=recovery; kill slot=2 at=1s")
    first, second = "kill slot=0 on=recovery", "kill slot=1 on=recovery"
    assert struck(schedule, "recovery", "recovery", "recovery") == [first, second, ""]
    assert not schedule.waits


def test_a_round_counts_from_the_first_committed_line_on():
    schedule = planned("kill driver on=round")
    assert struck(schedule, "round", "recovery", "line", "round") == [
        "",
        "",
        "",
        "kill driver on=round",
    ]


def test_a_fault_strikes_at_some_moment_of_the_phase_for_which_it_waits():
    schedule = planned("; ".join(["kill slot=0 on=round"] * 50), soonest_us=1_000)
    schedule.happened("line")
    found = [schedule.happened("round") for _ in range(50)]
    delays = {due.delay_us for due in found if due}
    assert len(delays) > 1
    assert all(1_000 <= delay_us < SPANS["round"] for delay_us in delays)


def test_a_fault_has_struck_when_its_moment_came_or_if_it_must_when_it_found_something():
    schedule = planned(
        "kill slot=0 at=1s; damage slot=0 at=1s; damage slot=1 at=1s; kill slot=0 at=1s"
    )
    faults: tuple[Fault, ...] = tuple(schedule.faults)
    for fault in faults[:3]:
        schedule.begins(fault, 1_000)
    schedule.finds(faults[1], 1_001)
    schedule.finds(faults[1], 1_002)
    assert [strike.at_ms for strike in schedule.strikes()] == [1_000, 1_001, None, None]
    assert [strike.struck for strike in schedule.strikes()] == [True, True, False, False]
