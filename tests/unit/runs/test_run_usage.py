"""A run that cannot be is refused with one clear message, before anything is started or written."""

import json
import threading

import pytest

import snapline as sl
from snapline.errors import UsageError
from snapline.rundir.directory import RunDirectory
from snapline.rundir.spec import Spec
from snapline.runs import run as run_module
from snapline.runs.run import resume, run

SOUND = {"flow": "q12", "protocol": "aligned"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rate": "max"}, r"^rate does not go together with duration forever: .*due at once"),
        ({"reference": True}, r"^reference does not go together with duration forever"),
        ({"chaos": "seed=7"}, r"^chaos does not go together with duration forever"),
    ],
)
@pytest.mark.parametrize("function", [sl.run, sl.start])
def test_what_needs_an_end_is_refused_without_one(function, given, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        function("q12", duration="forever", runs=tmp_path, **given)
    assert not list(tmp_path.iterdir())


def test_a_start_names_a_flow_or_a_run_and_a_resume_only_what_is_not_decided(tmp_path):
    with pytest.raises(UsageError, match=r"^say what to start: a flow, or resume="):
        sl.start(runs=tmp_path)
    with pytest.raises(UsageError, match=r"^protocol was decided when the run began"):
        sl.start(resume="last", protocol="aligned", runs=tmp_path)
    with pytest.raises(UsageError, match=r"there is no run|no runs"):
        sl.start(resume="last", runs=tmp_path)


@pytest.fixture(autouse=True)
def no_spark(monkeypatch):
    """Bad input is noticed before there is a Spark."""

    def refuse(slots, spares):
        raise AssertionError("a Spark was started for bad input")

    monkeypatch.setattr(run_module, "own_session", refuse)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"flow": "q99"}, r"no workload 'q99'.*snapline list workloads"),
        ({"protocol": "hopeful"}, r"no protocol 'hopeful'.*snapline list protocols"),
        ({"flow": "reachability"}, r"aligned cannot run .* a cycle: .*aligned-cyclic"),
        ({"guarantee": "perfect"}, r"perfect.*exactly-once"),
        ({"protocol": "none", "guarantee": "exactly-once"}, r"none cannot promise exactly-once"),
        ({"faults": "tickle slot=1 at=2s"}, r"tickle"),
        ({"faults": "kill slot=1 at=noon"}, r"noon"),
        ({"faults": "kill slot=2 at=2s"}, r"slot.*2"),
        ({"faults": "kill slot=1 step=7"}, r"not before.*'kill slot=1 step=7'.*snapline simulate"),
        ({"faults": "kill executor=1 at=2s"}, r"'kill executor=1 at=2s'.*no executor of its own"),
    ],
)
def test_what_cannot_be_run_is_refused_with_one_message_and_leaves_nothing(
    tmp_path, wrong, message
):
    with pytest.raises(UsageError, match=message):
        run(Spec(**{**SOUND, **wrong}), runs=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"size": "huge"}, r"size is full or small, not 'huge'"),
        ({"hot": 200}, r"hot is a whole number from 0 to 100, not 200"),
        ({"hot_moves": "5s"}, r"say how hot it is"),
        ({"hot": 20, "hot_moves": "often"}, r"hot_moves is written as"),
    ],
)
def test_a_size_or_a_skew_that_makes_no_sense_is_refused(tmp_path, wrong, message):
    with pytest.raises(UsageError, match=message):
        sl.run("q12", slots=1, runs=tmp_path / "runs", **wrong)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"protocol": "none", "interval": "5s"}, r"^interval changes nothing under none"),
        ({"protocol": "none", "publish_lag": 0}, r"^publish_lag changes nothing under none"),
        ({"input": "in", "rate": 2_000}, r"^rate is for input that is made during the run"),
        ({"records": 1_000_000}, r"^records is how many .* say rate max, too, or a duration"),
        ({"flow": sl.Dataflow("mine"), "size": "full"}, r"^size is for workloads; mine brings"),
    ],
)
def test_an_argument_that_would_change_nothing_is_refused_even_with_its_default(
    tmp_path, given, message
):
    with pytest.raises(UsageError, match=message):
        sl.run(**{"flow": "q12", "slots": 1, "runs": tmp_path / "runs", **given})
    assert not (tmp_path / "runs").exists()


class Reluctant(Exception):
    """Is pickled without complaint, and cannot be unpickled."""

    def __init__(self, one, two):
        super().__init__("only one")


@pytest.mark.parametrize(
    ("held", "why"),
    [
        (threading.Lock(), "cannot pickle '_thread.lock' object"),
        (Reluctant(1, 2), "missing 1 required positional argument: 'two'"),
    ],
)
def test_a_dataflow_that_cannot_be_sent_to_slots_is_refused(tmp_path, held, why):
    flow = sl.Dataflow("held")
    source = flow.source(sl.generated(lambda n: {"a": n}, rate=5))
    source.map(lambda batch: (held, batch)[1]).sink("out")
    with pytest.raises(UsageError, match=f"cannot be sent to other processes .*{why}"):
        sl.run(flow, runs=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_what_is_not_given_is_not_refused(tmp_path, monkeypatch):
    accepted = []
    monkeypatch.setattr(run_module, "carry_out", lambda prepared, *_: accepted.append(prepared))
    for given in ({"protocol": "none"}, {"rate": "max", "records": 5}, {"chaos": None}):
        sl.run("q12", slots=1, runs=tmp_path, **given)
    assert len(accepted) == 3


def test_a_run_without_checkpoints_is_resumed_as_it_began(tmp_path):
    spec = Spec("q12", protocol="none", slots=1, interval_ms=700)
    directory = RunDirectory.create(tmp_path, "q12", "none", spec.said())
    assert run_module.prepare_resume(directory.name, runs=tmp_path).spec == spec


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            json.dumps({**SOUND, "version": 99}),
            r"another version of Snapline: its run.json has version 99",
        ),
        (json.dumps(SOUND), r"another version of Snapline"),
        ("{", r"run\.json cannot be read"),
        (json.dumps({**SOUND, "version": 1, "colour": "red"}), r"colour|another version"),
    ],
)
def test_a_run_that_cannot_be_understood_is_not_resumed(tmp_path, content, message):
    directory = tmp_path / "old-one"
    directory.mkdir()
    (directory / "run.json").write_text(content)
    with pytest.raises(UsageError, match=message):
        resume("old-one", runs=tmp_path)
    assert [path.name for path in directory.iterdir()] == ["run.json"]


@pytest.mark.parametrize("name", ["nowhere", "last"])
def test_a_run_that_is_not_there_is_not_resumed(tmp_path, name):
    with pytest.raises(UsageError, match=r"there (is no run 'nowhere'|are no runs) in "):
        resume(name, runs=tmp_path)
