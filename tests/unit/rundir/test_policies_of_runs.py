"""How operators are protected in one run: given, kept in its directory, refused where it is not heeded."""

from dataclasses import asdict, replace

import pytest

from snapline.arguments import option
from snapline.cli.app import main
from snapline.core.policy import Intake, Policy
from snapline.dataflow.graph import Dataflow
from snapline.errors import GraphError, UsageError
from snapline.experiments.sweep_file import sweep_of
from snapline.protocols import PROTOCOLS
from snapline.protocols.none import NONE
from snapline.rundir.directory import VERSION, RunDirectory
from snapline.rundir.program import build_job, find_program
from snapline.rundir.spec import Spec, spec_from, spec_of
from snapline.sim.case import Case
from snapline.sim.run import simulate
from snapline.workload.common.own import generated


@pytest.fixture
def heeding(monkeypatch):
    """A protocol that heeds policies, as far as whoever prepares a run can see."""
    monkeypatch.setitem(
        PROTOCOLS.own, "heeding", replace(NONE, name="heeding", heeds_policies=True)
    )
    return "heeding"


GIVEN = {"flow": "q12", "save": {"count": "1s", "bids": "no"}, "inputs": {"count": "wait:50"}}
READ = {"save": (("count", "1s"), ("bids", "no")), "inputs": (("count", "wait:50"),)}


def test_a_run_is_given_its_policies_by_name():
    spec = spec_from(GIVEN, str)
    assert (spec.save, spec.inputs) == (READ["save"], READ["inputs"])


def test_they_are_kept_in_the_directory_of_the_run(tmp_path):
    spec = replace(Spec("q12"), **READ)
    directory = RunDirectory.create(
        tmp_path, "q12", "aligned", {"version": VERSION, **asdict(spec)}
    )
    assert spec_of(directory) == spec


def policy_in(job, task="results/0"):
    return job.deployment.plans[task].policy


def test_they_reach_the_tasks_of_the_run(heeding):
    spec = replace(Spec("q12", protocol=heeding, slots=1), save=(("count", "1s"),))
    job = build_job(spec, find_program(spec))
    assert policy_in(job) == Policy(saved=True, every_ms=1_000)  # of the task that the sink names
    other = replace(spec, inputs=(("count", "keep"),))
    assert policy_in(build_job(other, find_program(other))).intake is Intake.KEEP
    assert (
        build_job(other, find_program(other)).deployment.fingerprint != job.deployment.fingerprint
    )


def test_they_replace_what_the_dataflow_of_a_user_says(heeding):
    flow = Dataflow("mine")
    source = flow.source(generated(lambda n: {"page": n % 3}, rate=10, name="gets"), name="gets")
    source.key_by("page").count(name="count").checkpoint(every="9s").sink("out")
    spec = replace(Spec("mine", protocol=heeding, slots=1), save=(("count", "1s"),))
    job = build_job(spec, find_program(spec, flow))
    assert policy_in(job, "out/0") == Policy(saved=True, every_ms=1_000)


@pytest.mark.parametrize("said", [{"save": (("count", "1s"),)}, {"inputs": (("count", "drop"),)}])
def test_a_protocol_that_does_not_heed_them_refuses_the_run(said):
    spec = replace(Spec("q12"), **said)
    message = "aligned protects all operators alike, and cannot heed what is said of 'count'"
    with pytest.raises(UsageError, match=message):
        build_job(spec, find_program(spec))


def test_an_operator_that_is_not_there_is_named_with_the_nearest(heeding):
    spec = replace(Spec("q12", protocol=heeding), save=(("cout", "1s"),))
    with pytest.raises(
        GraphError, match="q12 has no operator 'cout' to protect; did you mean count"
    ):
        find_program(spec)


@pytest.mark.parametrize(
    "words",
    [
        ["run", "q12", "--save", "count=1s"],
        ["run", "q12", "--save", "cout=1s"],
        ["run", "q12", "--inputs", "count=loose"],
        ["run", "q12", "--save", "count=1s", "--save", "count=2s"],
        [
            "simulate",
            "--protocol",
            "aligned",
            "--workload",
            "q12",
            "--seed",
            "1",
            "--save",
            "count=1s",
        ],
        ["simulate", "--workload", "q12", "--save", "cout=1s"],
        ["simulate", "--inputs", "count=loose"],
    ],
)
def test_the_shell_refuses_it_with_one_line(words, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["snapline", *words])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    said = capsys.readouterr()
    assert "count" in said.err
    assert "Traceback" not in said.err + said.out
    assert not (tmp_path / "runs").exists()


def test_a_simulated_case_says_them_in_its_command_and_its_file():
    case = Case("aligned", "q12", 1, save={"count": "1s"}, inputs={"count": "wait:50"})
    assert case.save == (("count", "1s"),)
    assert case.command().endswith("--save count=1s --inputs count=wait:50")
    assert Case.from_json(case.to_json()) == case
    assert "cannot heed what is said of 'count'" in simulate(case).refused


def test_a_sweep_varies_them():
    sweep = sweep_of(
        {
            "base": {"flow": "q12", "save": {"count": "1s"}},
            "matrix": {"inputs": [{"count": "drop"}, {"count": "keep"}]},
        }
    )
    assert [column.spec.inputs for column in sweep.columns if not column.again] == [
        (("count", "drop"),),
        (("count", "keep"),),
    ]
    assert {column.spec.save for column in sweep.columns} == {(("count", "1s"),)}


def test_wrong_ones_are_said_as_the_user_wrote_them():
    with pytest.raises(UsageError, match=r"--save: count is written as 500ms, .*; or yes, or no"):
        spec_from({"flow": "q12", "save": {"count": "soon"}}, option)
    with pytest.raises(UsageError, match="--inputs: count is one of drop, wait, keep, or wait:N"):
        spec_from({"flow": "q12", "inputs": {"count": "soon"}}, option)


def test_a_barrier_by_order_is_refused_where_records_may_be_lost(heeding):
    flow = Dataflow("mine")
    a, b = (flow.source(generated(lambda n: {"n": n}, rate=9, name=x), name=x) for x in "ab")
    a.barrier(b, name="pairs").sink("out")
    for protocol, said in (
        ("none", "under none: it may lose"),
        (heeding, "from 'a' to 'pairs' is"),
    ):
        spec = Spec("mine", protocol=protocol, slots=1)
        with pytest.raises(UsageError, match=f"the barrier 'pairs' pairs records by .*{said}"):
            build_job(spec, find_program(spec, flow))
    exact = Spec("mine", slots=1)
    assert build_job(exact, find_program(exact, flow)).deployment.barriers
