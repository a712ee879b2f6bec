"""A run of a system under test, with a toy in its place: input, faults, verdict, and what it leaves."""

import json

import pytest
from pyarrow import parquet
from toy_system import Toy, use_toy_clock

import snapline as sl
from snapline.errors import UsageError
from snapline.journal.fault_happenings import ConnectionsDisturbed
from snapline.rundir.spec import Spec
from snapline.systems.harness.base import State
from snapline.systems.run import run

SPEC = Spec("sst", slots=2, rate=400, duration_ms=1_000, size="small", system="toy")


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    use_toy_clock(monkeypatch)


def ran(tmp_path, toy, faults="", **changes):
    spec = Spec(**{**{f: getattr(SPEC, f) for f in SPEC.__slots__}, "faults": faults, **changes})
    return run(spec, toy, runs=tmp_path)


def test_a_sound_system_is_kept_and_leaves_tables_that_can_be_judged_again(tmp_path):
    toy = Toy()
    finished = ran(tmp_path, toy)
    assert finished.verdict.kept == "yes"
    assert set(finished.verdict.guarantees.values()) == {"yes"}
    assert finished.verdict.because.startswith("400 of 400 events")
    assert finished.verdict.because.endswith("it is a toy")
    assert toy.calls == ["start", "end", "stop"]
    path = finished.directory.path
    events = parquet.read_table(path / "input")
    outputs = parquet.read_table(path / "output")
    assert {"id", "time", "resource", "partition", "offset", "arrival"} <= set(events.column_names)
    assert {"resource", "window", "count", "ids", "position", "written"} == set(
        outputs.column_names
    )
    assert events.num_rows == 400 == sum(map(len, outputs["ids"].to_pylist()))
    assert outputs["position"].to_pylist() == list(range(outputs.num_rows))
    assert min(outputs["written"].to_pylist()) >= 1_000
    assert not list((path / "late").iterdir())
    described = json.loads((path / "run.json").read_text())
    assert (described["system"], described["protocol"]) == ("toy", "")
    assert described["origin_s"] > 0
    assert json.loads((path / "result.json").read_text())["kept"] == "yes"


def test_input_comes_in_pieces_when_it_is_due(tmp_path):
    toy = Toy()
    ran(tmp_path, toy)
    assert len(toy.taken) == 3
    latest = [int(piece["time"].max()) for piece in toy.taken]
    assert latest == sorted(latest)
    assert latest[0] < latest[-1] - 400
    assert sum(map(len, toy.taken)) == 400


def test_output_that_is_repeated_after_a_kill_is_found_and_the_fault_is_named(tmp_path):
    toy = Toy(repeats=True)
    finished = ran(tmp_path, toy, "kill driver on=round")
    assert finished.verdict.guarantees == {
        "at-most-once": "no",
        "at-least-once": "yes",
        "exactly-once": "no",
    }
    assert finished.verdict.kept == "no"
    assert "duplicate" in finished.verdict.because
    assert "active: kill driver on=round" in finished.verdict.because
    assert finished.figures.lost == 1
    assert len(finished.figures.restart_s) == 1


def test_a_kill_lasts_until_the_system_runs_again(tmp_path):
    phases = ran(tmp_path, Toy(), "kill driver at=300ms").figures.lineage.phases
    assert list(phases) == ["control", "failure", "recovery"]
    assert phases["failure"].from_ms >= 300
    assert phases["failure"].to_ms - phases["failure"].from_ms >= 50  # two looks


def test_what_it_is_held_to_decides(tmp_path):
    repeated = ran(tmp_path, Toy(repeats=True), "kill driver on=round", guarantee="at-least-once")
    assert repeated.verdict.kept == "yes"
    lost = ran(tmp_path, Toy(loses=True), "kill driver on=round", guarantee="at-most-once")
    assert lost.verdict.kept == "yes"
    assert lost.verdict.guarantees["at-least-once"] == "no"


def test_a_fault_at_the_end_of_input_or_later_strikes_all_the_same(tmp_path):
    toy = Toy()
    ran(tmp_path, toy, "kill driver at=1300ms; pause driver at=1s for=200ms")
    assert toy.calls == [
        "start",
        "pause driver",
        "resume",
        "kill driver",
        "end",
        "stop",
    ]


def test_executors_and_the_network_are_hurt_without_the_system_being_down(tmp_path):
    toy = Toy()
    faults = (
        "kill executor=1 at=100ms; cut slot=0 from=1 at=300ms; delay slot=0 20ms at=400ms for=1s"
    )
    finished = ran(tmp_path, toy, faults)
    figures, failure = finished.figures, finished.figures.lineage.phases["failure"]
    assert toy.calls[1:4] == faults.replace("=1 at=100ms", " 1").split("; ")
    assert (figures.lost, figures.restart_s) == (1, ())
    whats = [happened.what for happened in finished.events]
    met = [what for what in whats if isinstance(what, ConnectionsDisturbed)]
    assert [(what.connections, what.for_ms) for what in met] == [(1, 0), (1, 1_000)]
    assert failure.from_ms >= 100
    assert failure.to_ms >= 1_000


def test_a_fault_that_finds_nobody_or_no_moment_is_said(tmp_path):
    toy = Toy()
    toy.in_round = lambda: False
    finished = ran(
        tmp_path, toy, "kill driver at=200ms; kill driver at=200ms; kill driver on=round"
    )
    assert "'kill driver at=200ms' found nobody" in finished.verdict.because
    assert "1 of 3 faults never struck: 'kill driver on=round'" in finished.verdict.because


def test_a_system_that_does_not_come_back_says_nothing_about_what_is_missing(tmp_path):
    finished = ran(tmp_path, Toy(fails="its disk is full"))
    assert finished.verdict.kept == "unknown"
    assert "its disk is full" in finished.verdict.because


class Slow(Toy):
    """Takes 1,000 seconds after the end of its input; its figures show that it gets on, or do not."""

    looks = 0
    shows = True

    def look(self):
        self.looks += self.ended
        return super().look() if self.looks > 20_000 else State.RUNNING

    def figures(self):
        return {"batches": self.looks // 4_000 if self.shows else 0}


def test_a_system_that_gets_on_is_waited_for_and_one_that_stands_still_is_given_up(tmp_path):
    slow, still = Slow(), Slow()
    assert ran(tmp_path, slow).verdict.kept == "yes"
    still.shows = False
    verdict = ran(tmp_path, still).verdict
    assert verdict.kept == "unknown"
    assert "it has all its input, and made no progress for 300 s" in verdict.because
    assert still.looks < 20_000 < slow.looks
    assert still.calls[-1] == "stop"


def test_it_is_stopped_whatever_happens(tmp_path):
    toy = Toy()
    toy.look = lambda: 1 / 0
    with pytest.raises(ZeroDivisionError):
        ran(tmp_path, toy)
    assert toy.calls[-1] == "stop"


def test_a_program_can_bring_a_system_of_its_own(tmp_path):
    toy = Toy()
    finished = sl.run_on(
        toy,
        "sst",
        slots=2,
        duration="1s",
        rate="max",
        records=300,
        size="small",
        settings={"resources": 2},
        faults=["kill driver on=round"],
        runs=tmp_path,
    )
    assert (finished.verdict.kept, finished.rows["counts"]) == ("yes", 6)
    assert finished.spec.system == "toy"
    assert "kill driver" in toy.calls


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"faults": "kill slot=1 at=1s"}, "it has no slots"),
        ({"flow": "q12"}, "it runs sst"),
        ({"flow": "my.py:flow"}, "no workload"),
        ({"slots": 0}, "slots must be at least 1"),
    ],
)
def test_what_it_cannot_do_is_refused_before_anything_is_started(tmp_path, changes, said):
    toy = Toy()
    with pytest.raises(UsageError, match=said):
        ran(tmp_path, toy, **changes)
    assert toy.calls == []
    assert not list(tmp_path.iterdir())
