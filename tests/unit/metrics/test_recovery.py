"""Recovery on runs made by hand: backlog, p50 and p99, to a part of a second, or with a lower bound."""

from dataclasses import replace

import pytest

from metric_runs import SECOND, second, seconds
from snapline.metrics.failures import Failure
from snapline.metrics.recovery import (
    PATIENCE_S,
    Back,
    SlotsLatency,
    Until,
    aftermath,
    aftermaths,
    failure_figures,
)
from snapline.metrics.second import Part, SlotSecond

BACK = Failure(12_300_000, 13_000_000, (1,), 12_000_000)
GOOD, SLOW, SILENT = Part(2, 0, 20.0, 20.0), Part(2, 0, 300.0, 300.0), Part(2, 0, None, None)


def recoveries(run, found):
    return [after.recovery_s for after in aftermaths(run, found)]


def back(run, failure=BACK):
    return aftermath(run, failure, failure.lost_us).back


def test_recovery_ends_with_the_first_of_five_calm_seconds():
    run = seconds(*[20] * 12, 300, 900, 35, *[20] * 6)
    assert recoveries(run, [BACK]) == pytest.approx([14 - 12.3])


def test_five_calm_seconds_must_follow_each_other():
    run = seconds(*[20] * 12, 300, *[20] * 4, 300, *[20] * 5)
    assert recoveries(run, [BACK]) == pytest.approx([18 - 12.3])


def test_a_run_that_ends_too_early_has_not_recovered_and_says_for_how_long_it_had_not():
    run = seconds(*[20] * 12, 300, 300, *[20] * 4)
    run[-1] = replace(run[-1], length_us=400_000)
    assert recoveries(run, [BACK]) == [None]
    never = Until(5.1, censored=True)  # the run ended at 17.4 s
    assert back(run) == Back(Until(0.7, censored=False), never, never)


def test_a_second_without_output_is_not_recovered_but_its_backlog_may_be():
    run = seconds(*[20] * 12, None, None, None, *[20] * 6)
    assert back(run).p50 == Until(2.7, censored=False)
    assert back(run).backlog == Until(0.7, censored=False)
    assert recoveries(run, [BACK]) == pytest.approx([2.7]), "the later of the two"


def test_a_backlog_of_more_than_twice_what_was_usual_is_not_recovered():
    run = seconds(*[20] * 22, backlog=400)
    run[14] = replace(run[14], backlog=801)
    assert recoveries(run, [BACK]) == pytest.approx([15 - 12.3])
    run[14] = replace(run[14], backlog=800)
    assert recoveries(run, [BACK]) == pytest.approx([13 - 12.3])


@pytest.mark.parametrize("missing", [{"running": 1}, {"backlog": None}])
def test_a_second_with_a_slot_missing_is_not_recovered(missing):
    run = seconds(*[20] * 22)
    run[13] = replace(run[13], **missing)
    assert recoveries(run, [BACK]) == pytest.approx([14 - 12.3])


def test_only_the_last_ten_seconds_before_the_loss_say_what_is_usual():
    run = seconds(*[500] * 8, *[20] * 10, 45, *[20] * 8)
    lost = Failure(18 * SECOND, 18_500_000)
    assert recoveries(run, [lost]) == pytest.approx([1])
    assert recoveries([*run[:12], second(12), *run[13:]], [BACK]) == pytest.approx([0.7])


def test_twice_nothing_is_not_the_bound():
    run = seconds(*[0.1] * 12, 500, *[9.9] * 5, backlog=0)
    run[14] = replace(run[14], backlog=100)
    assert recoveries(run, [BACK]) == pytest.approx([0.7])


def test_what_is_usual_after_a_second_failure_is_what_was_usual_before_the_first():
    run = seconds(*[20] * 12, *[900] * 8, *[20] * 5)
    later = Failure(18_500_000, 19_000_000)
    assert recoveries(run, [BACK, later]) == pytest.approx([20 - 12.3, 20 - 18.5])


def test_a_job_that_never_ran_again_has_not_recovered_and_one_that_never_ran_before_cannot_say():
    run = seconds(*[20] * 30)
    assert back(run, Failure(500_000, 600_000)) is None
    never = Until(18.0, censored=True)
    assert back(run, Failure(12 * SECOND)) == Back(never, never, never)


# Exactly.


def test_recovery_is_known_to_a_part_of_a_second():
    run = seconds(*[20] * 12, 300, 900, *[20] * 6)
    run[13] = replace(run[13], parts=(SLOW, SLOW, GOOD, GOOD))
    assert recoveries(run, [BACK]) == pytest.approx([13.5 - 12.3])
    run[13] = replace(run[13], parts=(SLOW, SLOW, SILENT, GOOD))
    assert recoveries(run, [BACK]) == pytest.approx([13.75 - 12.3]), "no output, no recovery"
    run[13] = replace(run[13], parts=(GOOD, GOOD, GOOD, SLOW))
    assert recoveries(run, [BACK]) == pytest.approx([14 - 12.3])


def test_a_second_that_is_within_its_bound_may_begin_out_of_it():
    run = seconds(*[20] * 12, 300, 900, *[20] * 6)
    run[13] = replace(run[13], parts=(SLOW,) * 4)
    run[14] = replace(run[14], parts=(SLOW, SILENT, GOOD, GOOD))
    assert back(run).p50 == Until(1.95, censored=False)
    run[14] = replace(run[14], parts=(SILENT, SILENT, GOOD, GOOD))
    assert back(run).p50 == Until(1.7, censored=False), "the second has output"
    behind = Part(2, 900, 20.0, 20.0)
    run[13] = replace(run[13], backlog=0, parts=(behind, behind, GOOD._replace(backlog=None), GOOD))
    assert back(run).backlog == Until(1.45, censored=False)
    gone = SILENT._replace(running=1)
    run[14] = replace(run[14], parts=(GOOD, gone, GOOD, GOOD))
    assert back(run).p99 == Until(2.2, censored=False), "a slot was missing"


def test_recovery_is_neither_before_the_loss_nor_before_all_tasks_run():
    run = [replace(each, parts=(GOOD,) * 4) for each in seconds(*[20] * 22)]
    assert recoveries(run, [Failure(12_300_000, 12_310_000)]) == pytest.approx([12.5 - 12.3])
    assert recoveries(run, [Failure(12_300_000, 12_800_000)]) == pytest.approx([12.8 - 12.3])


def test_backlog_p50_and_p99_come_back_each_for_itself():
    run = [replace(each, parts=(GOOD,) * 4) for each in seconds(*[20] * 24)]
    behind, late, rare = {"backlog": 900}, {"p50_ms": 90.0}, {"p99_ms": 90.0}
    run[12] = replace(run[12], **behind, **late, **rare, parts=(SLOW._replace(**behind),) * 4)
    run[13] = replace(run[13], **late, **rare, parts=(SLOW,) * 4)
    run[14] = replace(run[14], **rare, parts=(GOOD, GOOD._replace(p99_ms=90.0), GOOD, GOOD))
    found = back(run)
    assert found.backlog == Until(0.7, censored=False)
    assert found.p50 == Until(1.7, censored=False)
    assert found.p99 == Until(2.2, censored=False)


def test_a_job_is_watched_for_so_long_and_not_until_its_end():
    run = seconds(*[20] * 12, *[900] * (PATIENCE_S + 100))
    assert back(run).p50 == Until(float(PATIENCE_S), censored=True)
    # What is usual after that is what was then, and not what was usual long ago.
    later = Failure((PATIENCE_S + 40) * SECOND, (PATIENCE_S + 40) * SECOND)
    assert recoveries(run, [BACK, later]) == [None, 0.0]


def test_times_count_from_the_detection_and_from_the_fault():
    run = seconds(*[20] * 12, 300, 900, *[20] * 4)
    (found,) = failure_figures(run, [BACK], aftermaths(run, [BACK]))
    assert (found.lost_at_s, found.detection_s, found.slots) == (12.3, 0.3, (1,))
    assert found.restart == Until(0.7, censored=False)
    assert found.from_detection.backlog == Until(0.7, censored=False)
    assert found.from_fault.backlog == Until(1.0, censored=False)
    assert found.from_detection.p99 == Until(5.7, censored=True)
    assert found.from_fault.p99 == Until(6.0, censored=True)
    unmade = replace(BACK, struck_us=None)
    (found,) = failure_figures(run, [unmade], aftermaths(run, [unmade]))
    assert (found.detection_s, found.from_fault) == (None, None)


# Slots that were hit, and the others.


def test_slots_that_were_hit_are_told_from_the_others_until_p99_is_back():
    run = seconds(*[20] * 12, 300, 900, *[20] * 8)
    for each in run:
        own = each.p50_ms if each.at_s in (12, 13) else 20.0
        each.slots = (
            SlotSecond(0, 500, 600, 0, 25.0, 30.0),
            SlotSecond(1, 500, 400, 0, own, 2 * own),
        )
    run[13].slots += (SlotSecond(2, 0, 0, None, None, None),)
    after = aftermath(run, BACK, BACK.lost_us)
    slow = [run[12].p50_ms, run[13].p50_ms]
    assert after.hit == SlotsLatency(1, 800, pytest.approx(sum(slow) / 2), 2 * slow[1], 0)
    assert after.others == SlotsLatency(2, 1200, 25.0, 30.0, 0)


def test_slots_that_put_out_nothing_have_no_latency():
    run = seconds(*[20] * 12, None, *[20] * 8)
    after = aftermath(run, BACK, BACK.lost_us)
    assert after.hit == after.others == SlotsLatency(0, 0, None, None, 0)


def test_whole_seconds_without_output_count_from_the_loss_until_all_run_again():
    """Slot 1 is lost at 12.0 s and runs again at 15.5 s; slot 0 writes nothing in one second of these."""
    run = seconds(*[20] * 22)
    for each in run:
        written = 0 if each.at_s in (11, 13) else 5
        gone = each.at_s in (12, 13, 14, 15)
        each.slots = (SlotSecond(0, 5, written, 0, 20.0, 20.0),)
        each.slots += () if gone else (SlotSecond(1, 5, 5, 0, 20.0, 20.0),)
    away = replace(BACK, lost_us=12_000_000, running_us=15_500_000)
    after = aftermath(run, away, away.lost_us)
    assert (after.hit.silent_s, after.others.silent_s) == (3, 1)
