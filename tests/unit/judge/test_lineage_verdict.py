"""The verdict on outputs with lineage: what was promised decides, the witness says when and why."""

import numpy as np
import pytest

from snapline.batch import Batch
from snapline.core.guarantee import Guarantee
from snapline.judge.lineage import judge_lineage
from snapline.validate.causes import Cause
from snapline.validate.sentences import TimedFault
from snapline.workload.common.base import Lineage

NOTHING = Batch({}, 0)
KILL = TimedFault("kill slot=1 at=25ms", 25, 30)


def events():
    """Three windows of 10 ms, resources 1 and 2, ids 0 to 5."""
    time = np.array([1, 2, 11, 12, 21, 22])
    return Batch.of(
        id=np.arange(6), time=time, resource=np.array([1, 2, 1, 2, 1, 2]), arrival=time + 1
    )


LINEAGE = Lineage(events, 10, 0, "event {}".format)


def outputs(*rows):
    """(resource, window, ids, written)."""
    resource, window, ids, written = (list(column) for column in zip(*rows, strict=True))
    return Batch.of(
        resource=np.array(resource),
        window=np.array(window),
        count=np.array([len(each) for each in ids]),
        ids=ids,
        position=np.arange(len(rows)),
        written=np.array(written),
    )


RIGHT = [
    (1, 0, [0], 15),
    (2, 0, [1], 16),
    (1, 10, [2], 28),
    (2, 10, [3], 29),
    (1, 20, [4], 40),
    (2, 20, [5], 40),
]


def report(rows, late=NOTHING, faults=(KILL,)):
    return judge_lineage(LINEAGE, outputs(*rows), late, faults, 50)


def test_right_output_is_kept_and_wholly_reliable():
    found = report(RIGHT)
    verdict = found.verdict(Guarantee.EXACTLY_ONCE)
    assert (verdict.kept, verdict.problems) == ("yes", ())
    assert verdict.because == "6 of 6 events were counted once in 6 outputs, or late (0)"
    assert set(verdict.guarantees.values()) == {"yes"}
    assert found.figures.correctness == 100.0
    assert found.figures.reliability == 100.0
    assert list(found.figures.phases) == ["control", "failure", "recovery"]


def test_an_output_with_the_right_count_is_correct_whichever_events_it_names():
    named_wrongly = report([(1, 0, [1], 15), *RIGHT[1:]]).figures
    assert named_wrongly.correctness == 100.0
    assert named_wrongly.reliability < 100.0
    counted_twice = report([(1, 0, [0, 0], 15), *RIGHT[1:]]).figures
    assert counted_twice.correctness == pytest.approx(100 * 5 / 6, abs=1e-3)
    invented = report([*RIGHT, (3, 0, [0], 27)]).figures
    assert invented.correctness == pytest.approx(100 * 6 / 7, abs=1e-3)


def test_a_late_event_is_not_missing_in_the_output_of_its_window():
    late = Batch.of(id=np.array([3]), position=np.array([0]), written=np.array([31]))
    assert report([row for row in RIGHT if row[2] != [3]], late).figures.correctness == 100.0
    assert report(RIGHT, late).figures.correctness == pytest.approx(100 * 5 / 6, abs=1e-3)


def test_late_events_are_where_they_should_be():
    late = Batch.of(id=np.array([3]), position=np.array([0]), written=np.array([31]))
    found = report([row for row in RIGHT if row[2] != [3]], late)
    assert found.verdict(Guarantee.EXACTLY_ONCE).because.endswith("in 5 outputs, or late (1)")
    assert found.figures.reliable_throughput == 6 / 0.05


def test_a_lost_event_is_named_with_the_fault_that_was_active():
    verdict = report([row for row in RIGHT if row[2] != [4]]).verdict(Guarantee.EXACTLY_ONCE)
    assert verdict.kept == "no"
    assert verdict.guarantees == {
        "at-most-once": "yes",
        "at-least-once": "no",
        "exactly-once": "no",
    }
    assert verdict.because.startswith("missing: Event 4 (id 4) is lost")
    assert "active: kill slot=1 at=25ms" in verdict.because


def test_what_was_lost_long_before_the_fault_is_not_blamed_on_it():
    verdict = report([row for row in RIGHT if row[2] != [0]]).verdict(Guarantee.EXACTLY_ONCE)
    assert "no fault had happened yet" in verdict.because


def test_a_duplicate_breaks_at_most_once_alone():
    twice = report([*RIGHT, (1, 0, [0], 27)])
    assert twice.verdict(Guarantee.AT_LEAST_ONCE).kept == "yes"
    verdict = twice.verdict(Guarantee.EXACTLY_ONCE)
    assert (verdict.kept, verdict.problems[0].kind) == ("no", "duplicate")
    # It was written at 27, while slot 1 was down.
    assert "active: kill slot=1 at=25ms" in verdict.because
    assert twice.figures.reliability == pytest.approx(100 * 5 / 6, abs=1e-3)


def test_an_event_that_is_late_and_counted_is_blamed_on_what_happened_before_the_later_of_both():
    late = Batch.of(id=np.array([0]), position=np.array([0]), written=np.array([15]))
    rows = [(1, 0, [0], 29), *RIGHT[1:]]
    verdict = report(rows, late).verdict(Guarantee.EXACTLY_ONCE)
    assert verdict.because.startswith("late and windowed: Event 0")
    assert "active: kill slot=1 at=25ms" in verdict.because


def test_where_nothing_was_promised_the_witness_is_told_all_the_same():
    verdict = report(RIGHT[:5]).verdict(Guarantee.NOTHING)
    assert verdict.kept == "no"
    assert verdict.because.startswith("nothing was promised, and the output is wrong: missing")


def test_without_any_output_everything_is_lost():
    found = judge_lineage(LINEAGE, NOTHING, NOTHING, (), 50)
    assert found.verdict(Guarantee.EXACTLY_ONCE).kept == "no"
    assert found.judged.lost == 6
    assert found.figures.reliability == 0.0
    assert set(found.sentences) == {Cause.TRUNCATED}
