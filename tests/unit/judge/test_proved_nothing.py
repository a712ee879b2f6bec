"""A run that proved nothing is not acquitted: faults that never struck, no output, nothing to lose."""

from dataclasses import asdict

import pytest

from snapline.core.guarantee import Guarantee
from snapline.dataflow.deploy import deploy
from snapline.engine.reference.reference import reference_output
from snapline.ids import Epoch, TaskId
from snapline.journal.entry import COORDINATOR, Happened
from snapline.journal.fault_happenings import FaultEnded, FaultMissed, ProcessKilled
from snapline.journal.happenings import JobRunning, LineDecided, SlotLost
from snapline.judge.evidence import Question, RunEnding
from snapline.judge.run_directory import judge
from snapline.rundir.directory import RunDirectory
from snapline.rundir.journal_file import JournalFile
from snapline.rundir.program import find_program
from snapline.rundir.spec import Spec
from snapline.storage.api import Extent, Life
from snapline.storage.files.outlet import FileOutlet

LINE = (3_000, LineDecided(1, 1, {}))
RUNNING = (0, JobRunning())
LOST = (4_000, SlotLost(1, 1))
KILLED = (3_990, ProcessKilled("kill slot=1 at=4s"))
MISSED = (3_990, FaultMissed("kill slot=1 at=4s"))
EARLY = (1_000, SlotLost(1, 1))


@pytest.fixture
def judged(tmp_path):
    """Judges a run of q12 or sst whose output is right, by what its journal says of the faults."""

    def make(faults, *happened, rows=None, question=None, **given):
        spec = Spec(given.pop("flow", "q12"), slots=1, rate=100, duration_ms=4_000, size="small")
        fields = {**asdict(spec), "origin_s": 1_000.0, "faults": faults, **given}
        directory = RunDirectory.create(tmp_path, "x", "x", fields)
        right = reference_output(deploy(find_program(spec).flow, 1), 0)
        extents = {}
        for sink, batch in right.items():
            egress = directory.outlet.open(Life(TaskId(f"{sink}/0"), 1, 1), 0)
            egress.append(batch)
            egress.sync()
            extents[TaskId(f"{sink}/0")] = Extent(
                egress.file, 0, len(batch) if rows is None else rows
            )
        directory.outlet.publish(1, extents)
        journal = JournalFile(directory.path / "journal" / "driver-1.jsonl")
        for at_ms, what in happened:
            journal.add(Happened(at_ms * 1000, COORDINATOR, Epoch(1), what))
        journal.close()
        return judge(directory, question, ending=RunEnding())

    return make


def answer(judgement):
    return judgement.verdict.kept


def test_a_fault_that_struck_after_a_line_proves_something(judged):
    judgement = judged("kill slot=1 at=4s", RUNNING, LINE, KILLED, LOST)
    assert answer(judgement) == "yes"
    assert [asdict(strike) for strike in judgement.strikes] == [
        {"statement": "kill slot=1 at=4s", "struck": True, "at_ms": 3_990}
    ]


def test_a_fault_that_found_its_target_down_has_struck(judged):
    assert answer(judged("kill slot=1 at=4s", RUNNING, LINE, LOST, MISSED)) == "yes"


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        ("kill slot=1 at=60s", "1 of 1 fault never struck: 'kill slot=1 at=1m'"),
        ("kill slot=1 at=4s; kill slot=0 on=recovery", "1 of 2 faults never struck"),
        ("kill slot=1 at=4s; kill slot=1 at=4s", "1 of 2 faults never struck"),
        ("kill slot=1 at=4s; damage slot=0 at=1s", "1 of 2 faults never struck"),
    ],
)
def test_a_fault_that_never_struck_leaves_it_unknown(judged, faults, said):
    judgement = judged(faults, RUNNING, LINE, KILLED, LOST)
    assert answer(judgement) == "unknown"
    assert said in judgement.verdict.because
    assert set(judgement.verdict.guarantees.values()) == {"unknown"}


def test_a_fault_that_heals_does_not_strike_by_healing(judged):
    plan = "delay slot=1 100ms at=1s for=1s"
    assert answer(judged(plan, RUNNING, LINE, (2_000, FaultEnded(plan)))) == "unknown"


@pytest.mark.parametrize(
    "happened",
    [
        (RUNNING, KILLED, EARLY, LINE),  # before the first line
        (RUNNING, KILLED, EARLY),  # no line ever
        ((5_000, SlotLost(1, 1)), RUNNING, KILLED, LINE),  # before the job first ran
    ],
)
def test_losses_before_the_first_line_cost_nothing(judged, happened):
    assert answer(judged("kill slot=1 at=4s", *happened)) == "unknown"


def test_without_lines_there_is_something_to_lose_from_the_first_output_on(judged):
    # Rows that are written now come long after a loss of 1970.
    judgement = judged("kill slot=1 at=4s", RUNNING, KILLED, LOST, protocol="none")
    assert answer(judgement) == "unknown"
    assert "when there was nothing to lose yet" in judgement.verdict.because


@pytest.mark.parametrize(
    ("flow", "word"), [("q12", "put out nothing"), ("sst", "nothing was compared")]
)
def test_a_run_that_put_out_nothing_is_never_a_yes(judged, flow, word):
    least = Question(Guarantee.AT_MOST_ONCE)
    judgement = judged("", RUNNING, LINE, rows=0, flow=flow, question=least)
    assert answer(judgement) == "unknown"
    assert word in judgement.verdict.because


def test_doubt_takes_no_accusation_back(judged):
    judgement = judged("kill slot=1 at=60s", RUNNING, LINE, rows=3)
    assert answer(judgement) == "no"
    assert "missing" in judgement.verdict.because


def test_of_drawn_faults_some_may_miss_but_one_loss_must_count(judged):
    plan = "kill slot=1 at=4s; kill slot=0 at=60s"
    assert answer(judged(plan, RUNNING, LINE, KILLED, LOST, drawn=True)) == "yes"
    assert answer(judged(plan, RUNNING, LINE, KILLED, drawn=True)) == "unknown"


def test_whoever_allows_it_gets_a_yes_without_proof(judged):
    allowed = Question(allow_vacuous=True)
    assert answer(judged("kill slot=1 at=60s", RUNNING, LINE, question=allowed)) == "yes"
    assert answer(judged("kill slot=1 at=60s", RUNNING, LINE, allow_vacuous=True)) == "yes"


def test_without_a_journal_nobody_knows_whether_a_fault_struck(judged, tmp_path):
    judged("kill slot=1 at=4s", RUNNING, LINE, KILLED, LOST)
    directory = RunDirectory.open(tmp_path, "last")
    path = directory.path / "journal" / "driver-1.jsonl"
    path.write_text(
        path.read_text().replace('"ProcessKilled"', '"ProcessKil\x00ed"').replace("{", "[", 3)
    )
    judgement = judge(directory, ending=RunEnding())
    assert answer(judgement) == "unknown"
    path.unlink()
    assert "no journal of a driver" in judge(directory, ending=RunEnding()).verdict.because


@pytest.mark.parametrize(("promise", "kept"), [("exactly-once", "no"), ("at-most-once", "unknown")])
def test_a_broken_chain_breaks_exactly_once_and_leaves_the_rest_open(
    judged, tmp_path, promise, kept
):
    judged("", RUNNING, LINE)
    directory = RunDirectory.open(tmp_path, "last")
    manifests = directory.path / "output" / "manifests"
    (manifests / "2.obj").write_bytes((manifests / "1.obj").read_bytes())
    judgement = judge(directory, Question(Guarantee(promise)), ending=RunEnding())
    assert answer(judgement) == kept
    assert "in the place of manifest 2 lies number 1" in judgement.verdict.because


def test_a_run_whose_old_rows_were_deleted_is_never_acquitted_nor_condemned(tmp_path):
    spec = Spec("q12", slots=1, rate=100, duration_ms=4_000, size="small", retain_ms=20_000)
    fields = {**asdict(spec), "origin_s": 1_000.0}
    directory = RunDirectory.create(tmp_path, "x", "x", fields)
    now_ms = [1_000_000_000_000]
    outlet = FileOutlet(directory.path / "output", 20_000, lambda: now_ms[0])
    for number, (sink, batch) in enumerate(
        reference_output(deploy(find_program(spec).flow, 1), 0).items()
    ):
        task = TaskId(f"{sink}/0")
        egress = outlet.open(Life(task, 1, 1), 0)
        for at, stop in ((0, 5), (5, len(batch))):
            egress.append(batch.slice(at, stop))
            egress.sync()
            assert outlet.publish(2 * number + 1 + bool(at), {task: Extent(egress.file, at, stop)})
            now_ms[0] += 15_000
    assert judge(directory, ending=RunEnding()).verdict.kept == "yes"
    outlet.compact(1)
    verdict = judge(directory, ending=RunEnding(), question=None).verdict
    assert (verdict.kept, set(verdict.guarantees.values())) == ("unknown", {"unknown"})
    assert "rows published since 2001-09-09 01:46:40 UTC are right; 5 older ones" in verdict.because
