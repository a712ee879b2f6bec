"""The verdict on a run that may lose something: by what it declared, what struck, and what came out."""

from dataclasses import asdict

import numpy as np
import pytest

from snapline.batch import Batch
from snapline.core.guarantee import Guarantee
from snapline.dataflow.deploy import deploy
from snapline.engine.reference.reference import reference_output
from snapline.errors import UsageError
from snapline.ids import INITIAL, Epoch, TaskId
from snapline.journal.entry import COORDINATOR, Happened
from snapline.journal.fault_happenings import ProcessKilled
from snapline.journal.happenings import JobRunning, SlotLost
from snapline.journal.loss_happenings import TaskLoss
from snapline.judge.evidence import Question, RunEnding
from snapline.judge.run_directory import judge
from snapline.kernels.routing import target_of
from snapline.rundir.directory import RunDirectory
from snapline.rundir.journal_file import JournalFile
from snapline.rundir.program import find_program
from snapline.rundir.spec import Spec
from snapline.storage.api import Life
from snapline.workload.common.generated import PARTITION_BITS

KILL = "kill slot=1 at=8s"
LATER_S = 32_503_680_000.0  # the year 3000: all was written before anything struck
BOUNDED = Guarantee.BOUNDED_LOSS.value
STRUCK = ((0, JobRunning()), (8_000, ProcessKilled(KILL)), (8_010, SlotLost(1, 1)))
OPERATORS = {
    "q1": ("results",),
    "sst": ("gets", "count", "counts", "late"),
    "gjoin": ("stream1", "stream2", "pairs"),
}
MANY_ROWS = (("window", 5_000),)


def losses(flow="q1", slot=1, to_ms=9_000):
    tasks = (TaskId(f"{name}/{slot}") for name in OPERATORS[flow])
    return tuple((to_ms, TaskLoss(task, INITIAL, 0, to_ms)) for task in tasks)


@pytest.fixture
def judged(tmp_path):
    """Judges a run of two slots in which rows of the right output are left out."""

    def make(*happened, flow="q1", left_out=lambda rows: np.zeros(len(rows), bool), **given):
        settings = given.pop("in_order", ())
        spec = Spec(
            flow,
            protocol="none",
            slots=2,
            rate=100,
            duration_ms=12_000,
            size="small",
            settings=settings,
        )
        question, ending = given.pop("question", None), given.pop("ending", RunEnding())
        fields = {**asdict(spec), "origin_s": LATER_S, "guarantee": BOUNDED, "faults": KILL}
        directory = RunDirectory.create(tmp_path, "x", "x", {**fields, **given})
        right = reference_output(deploy(find_program(spec).flow, 2), 0)
        for sink, batch in right.items():
            gone = (
                left_out(batch)
                if sink in ("results", "counts", "pairs")
                else np.zeros(len(batch), bool)
            )
            egress = directory.outlet.open(Life(TaskId(f"{sink}/0"), 1, 1), 0)
            egress.append(batch.take(~gone))
            egress.flush()
        journal = JournalFile(directory.path / "journal" / "driver-1.jsonl")
        for at_ms, what in happened:
            journal.add(Happened(at_ms * 1000, COORDINATOR, Epoch(1), what))
        journal.close()
        return judge(directory, question, ending=ending)

    return make


def of_slot(slot, from_ms, to_ms):
    """Which bids came by a slot in some time."""

    def chosen(bids: Batch):
        inside = (bids["time"] >= from_ms) & (bids["time"] <= to_ms)
        return inside & (bids["id"] >> PARTITION_BITS == slot)

    return chosen


@pytest.mark.parametrize("flow", ["q1", "sst"])
def test_nothing_lost_and_nothing_declared_is_a_plain_yes(judged, flow):
    found = judged(*STRUCK, flow=flow)
    assert found.verdict.kept == "yes"
    assert found.verdict.because == "nothing was lost, and nothing was declared as lost"
    assert found.verdict.guarantees["exactly-once"] == "yes"
    assert found.promise is Guarantee.BOUNDED_LOSS


def test_what_was_lost_is_told_beside_its_bound(judged):
    found = judged(*STRUCK, *losses(), left_out=of_slot(1, 7_990, 8_990))
    assert found.verdict.kept == "yes"
    assert found.verdict.guarantees == {
        "at-most-once": "yes",
        "at-least-once": "no",
        "exactly-once": "no",
        BOUNDED: "yes",
    }
    assert "lost 50 of 1,200 rows that were due" in found.verdict.because
    assert "(lag 2s, detection 2s, restart 30s)" in found.verdict.because
    assert "a lost slot was away for 1s at most" in found.verdict.because
    assert found.losses.lost == 50
    # all that was due from 6 s on; nothing is under way between slots
    assert found.losses.bound == 600


@pytest.mark.parametrize(
    "left_out", [of_slot(0, 8_000, 8_050), of_slot(1, 5_000, 5_050), of_slot(1, 9_010, 9_050)]
)
def test_what_passed_elsewhere_or_at_another_time_is_not_excused(judged, left_out):
    found = judged(*STRUCK, *losses(), left_out=left_out)
    assert found.verdict.kept == "no"
    assert found.verdict.because.startswith("missing bid ")


def test_a_loss_that_nobody_declared_is_not_excused(judged):
    assert judged(*STRUCK, left_out=of_slot(1, 8_100, 8_200)).verdict.kept == "no"


def test_a_loss_without_a_fault_or_beyond_the_bound_is_refused(judged):
    found = judged(*STRUCK, *losses(slot=0))
    assert found.verdict.kept == "no"
    assert "no fault struck slot 0 before that" in found.verdict.because


def test_a_loss_that_lasts_longer_than_the_allowances_is_refused(judged):
    found = judged(*STRUCK, *losses(to_ms=40_001))
    assert "all that it costs was due by 40,000 ms" in found.verdict.because


def windows_at(start_ms):
    def chosen(counts: Batch):
        return counts["window"] == start_ms

    return chosen


def test_a_window_that_was_put_out_before_is_not_excused(judged):
    """The window from 4 s on is closed long before the slot is struck."""
    found = judged(*STRUCK, *losses("sst"), flow="sst", left_out=windows_at(4_000))
    assert found.verdict.kept == "no"


def test_a_window_that_was_open_may_be_lost_with_its_task(judged):
    found = judged(
        *STRUCK,
        *losses("sst"),
        flow="sst",
        left_out=lambda rows: windows_at(7_600)(rows) & owned(rows, 1),
    )
    assert found.verdict.kept == "yes"
    assert found.losses.lost > 0


def test_a_window_of_a_task_that_was_not_lost_may_lack_only_what_came_from_a_lost_source(judged):
    found = judged(
        *STRUCK,
        *losses("sst"),
        flow="sst",
        left_out=lambda rows: windows_at(7_600)(rows) & owned(rows, 0),
    )
    assert found.verdict.kept == "no"


def owned(rows, slot):
    return np.array([target_of(key, 2) == slot for key in rows["resource"].tolist()], bool)


def test_a_run_that_was_cut_short_is_unknown(judged):
    found = judged(*STRUCK, *losses(), ending=RunEnding("it was ended"))
    assert (found.verdict.kept, found.verdict.because) == ("unknown", "it was ended")


def test_a_fault_that_never_struck_makes_it_unknown(judged):
    found = judged((0, JobRunning()))
    assert found.verdict.kept == "unknown"
    assert "never struck" in found.verdict.because


def test_without_a_rate_a_loss_cannot_be_judged(judged):
    found = judged(*STRUCK, *losses(), rate="max", records=600)
    assert "give the run a rate" in found.verdict.because
    assert found.verdict.kept == "unknown"


def test_other_systems_declare_nothing(judged):
    with pytest.raises(UsageError, match="other systems do not declare what they lost"):
        judged(*STRUCK, system="structured-streaming", question=Question(Guarantee.BOUNDED_LOSS))


def test_how_far_the_answer_is_off_is_part_of_the_judgement(judged):
    """All rows were written before the fault, but the 20 that are missing."""
    gone = of_slot(1, 8_200, 8_590)
    found = judged(*STRUCK, *losses(), left_out=gone)
    off = found.deviation
    assert (off.from_ms, off.rows, off.missing, off.right_again_s) == (8_000, 20, 1.0, None)
    assert judged(*STRUCK).deviation.is_zero


def test_nobody_says_how_far_off_a_run_is_that_was_cut_short(judged):
    assert judged(*STRUCK, ending=RunEnding("it was stopped")).deviation is None


def as_they_come(judged, *happened, **given):
    """A run of a join in which records met in the order of their times, though nobody saw to that."""
    settings = (("ordered", 0), *MANY_ROWS)
    return judged(*happened, flow="gjoin", in_order=MANY_ROWS, settings=settings, **given)


def test_a_loss_of_a_join_whose_order_nobody_knows_is_unknown(judged):
    found = as_they_come(judged, *STRUCK, *losses("gjoin"))
    assert (found.verdict.kept, found.verdict.guarantees[BOUNDED]) == ("unknown", "unknown")
    assert found.verdict.because.startswith("not compared: records meet as they come here")
    assert found.verdict.guarantees["exactly-once"] == "yes"
    assert as_they_come(judged, *STRUCK).verdict.kept == "yes", "nothing was lost"


def test_a_pair_that_every_order_of_arrival_gives_is_not_excused(judged):
    """Record and row came by slot 0 and met there, four seconds apart and long before the fault."""

    def chosen(pairs):
        early = (pairs["time_right"] < 1_000) & (pairs["time"] > 4_000) & (pairs["time"] < 5_000)
        of_slot_0 = np.array([target_of(key, 2) == 0 for key in pairs["key"].tolist()])
        able = early & of_slot_0 & (pairs["id"] >> PARTITION_BITS == 0)
        return np.arange(len(pairs)) == np.flatnonzero(able)[0]

    found = as_they_come(judged, *STRUCK, *losses("gjoin"), left_out=chosen)
    assert [problem.kind for problem in found.verdict.problems] == ["missing"]
    assert found.verdict.guarantees[BOUNDED] == "no"


def test_pairs_that_need_not_be_there_in_some_order_do_not_prove_at_least_once(judged):
    def every_other(pairs):
        return np.arange(len(pairs)) % 2 == 1

    asked = Question(Guarantee.AT_LEAST_ONCE)
    found = as_they_come(judged, *STRUCK, left_out=every_other, question=asked)
    assert found.verdict.guarantees["exactly-once"] == "no"
    assert (found.verdict.kept, found.verdict.guarantees["at-least-once"]) == ("unknown", "unknown")
    assert "nobody knows which pairs have to be there" in found.verdict.because
    assert as_they_come(judged, *STRUCK, question=asked).verdict.kept == "yes", (
        "exactly once is more"
    )
