"""The options of a run: what a user may set about engine and protocol, and what becomes of it."""

import inspect
import re

import pytest

from snapline.cli.request import Request
from snapline.dataflow.deploy import Deployment
from snapline.engine.options import OPTIONS, read_options
from snapline.errors import UsageError
from snapline.protocols import PROTOCOLS
from snapline.rundir.directory import RunDirectory
from snapline.rundir.program import build_job, find_program
from snapline.rundir.spec import spec_from, spec_of
from snapline.sim.case import Case
from snapline.sim.run import simulate

GIVEN = {
    "batch": "50",
    "linger": "20ms",
    "credit": 3,
    "fused": "no",
    "align_timeout": "1.5s",
    "deadline": 400,
}


def given_spec(**more):
    return spec_from({"flow": "q12", "slots": 2, "duration": "1s", "faults": "", **more}, str)


def job_of(**more):
    spec = given_spec(**more)
    return build_job(spec, find_program(spec))


def operators(deployment: Deployment):
    return {task.rpartition("/")[0] for task in deployment.plans}


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=lambda protocol: protocol.name)
def test_a_protocol_says_exactly_which_options_it_reads(protocol):
    classes = {*protocol.task.mro(), *protocol.coordinator.mro()} - {object}
    code = "".join(inspect.getsource(each) for each in classes)
    read = set(re.findall(r"\boptions\.(\w+)", code)) - {"interval_ms"}
    assert read == set(protocol.reads)


def test_what_is_given_reaches_protocol_engine_and_graph():
    job = job_of(protocol="unaligned", options=GIVEN, interval="700ms")
    settings, options = job.settings, job.options
    assert (settings.batch_max_records, settings.linger_ms, settings.credit) == (50, 20, 3)
    assert (options.align_timeout_ms, options.deadline_ms, options.interval_ms) == (1_500, 400, 700)
    usual = job_of(protocol="unaligned")
    assert operators(usual.deployment) < operators(job.deployment), "nothing is fused"
    assert usual.deployment.fingerprint != job.deployment.fingerprint, "a resume would notice"
    assert job_of(protocol="bcs", options={"line_max_lag": 4}).options.line_max_lag == 4


def test_batches_grow_while_a_source_lags_behind_unless_their_size_was_asked_for():
    usual, asked = job_of().settings, job_of(options={"batch": 50}).settings
    assert [usual.batch_limit(n) for n in (1, 15_999, 16_000, 10**9)] == [
        4_000,
        4_000,
        16_000,
        16_000,
    ]
    assert [asked.batch_limit(n) for n in (1, 50, 10**9)] == [50, 50, 50]


def test_the_default_of_each_option_changes_nothing():
    for protocol in PROTOCOLS.values():
        usual = {o.name: o.write(o.default) for o in OPTIONS.values() if o.used_by(protocol)}
        with_options, without = (
            job_of(protocol=protocol.name, options=each) for each in (usual, {})
        )
        assert (with_options.options, with_options.settings) == (without.options, without.settings)
        assert with_options.deployment.fingerprint == without.deployment.fingerprint


def test_a_run_directory_remembers_the_options(tmp_path):
    spec = given_spec(protocol="unaligned", options=GIVEN)
    directory = RunDirectory.create(tmp_path, "q12", "unaligned", spec.said())
    assert spec_of(directory) == spec
    for wrong in ([["batch", 0]], [["bach", 1]], [["batch"]], 3):
        directory.write("run.json", {**directory.spec(), "options": wrong})
        with pytest.raises(UsageError, match=r"run\.json was changed: .*option"):
            spec_of(directory)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"bach": 1}, "there is no option 'bach'; did you mean batch?"),
        ({"batch": "0"}, "the option batch is a whole number from 1 to 1,000,000, not 0"),
        ({"batch": True}, "the option batch is a whole number from 1 to 1,000,000, not True"),
        ({"fused": "perhaps"}, "the option fused is yes or no, not 'perhaps'"),
        ({"linger": "2m"}, "the option linger is from 0ms to 1m, not 2m"),
    ],
)
def test_a_value_that_an_option_cannot_have_is_one_sentence(given, message):
    with pytest.raises(UsageError) as refused:
        read_options(given)
    assert str(refused.value) == message


def test_an_option_that_the_protocol_does_not_heed_is_refused():
    with pytest.raises(UsageError, match=r"align_timeout changes nothing under aligned, which .*"):
        job_of(protocol="aligned", options={"align_timeout": "5ms"})
    request = Request(("aligned", "unaligned"), ("q12",), (1,), options=(("align_timeout", 5),))
    assert request.refusal("aligned") is not None
    assert request.refusal("unaligned") is None


def test_output_waits_for_no_more_lines_than_are_kept():
    with pytest.raises(UsageError, match=r"at least 3 lines have to be kept: .* kept_lines"):
        job_of(publish_lag=2)
    assert job_of(publish_lag=2, options={"kept_lines": 3}).settings.publish_lag == 2


def test_unaligned_aligns_for_as_long_as_it_is_told_to():
    def overtaken(**timeout):
        options = read_options({"deadline": "1h", "batch": 3, "linger": "0ms", **timeout})
        outcome = simulate(Case("unaligned", "q3", 2, records=200, faults="", options=options))
        assert outcome.violation is None, outcome.violation
        return outcome.stats.get("overtaken", 0)

    assert overtaken(align_timeout="0ms") > 0
    assert overtaken(align_timeout="1h") == 0


def test_a_simulated_run_is_repeated_with_its_options():
    case = Case("unaligned", "q12", 1, options=(("linger", 5), ("fused", 1)))
    assert case.command().endswith("--option fused=yes --option linger=5ms")
    assert Case.from_json(case.to_json()) == case
    with pytest.raises(UsageError, match="no option 'bach'"):
        Case.from_json(case.to_json().replace("linger", "bach"))


def test_when_tasks_checkpoint_can_be_chosen():
    given = {"every_records": "500", "at_window_close": "yes", "interval.bids": "2s"}
    job = job_of(protocol="hmnr", options={**given, "compress": "yes"})
    options = job.options
    assert (options.every_records, options.at_window_close) == (500, True)
    assert options.intervals_ms == (("bids", 2_000),)
    assert job.settings.compress is True
    usual = job_of(protocol="hmnr")
    assert usual.options.intervals_ms == ()
    assert usual.deployment.fingerprint == job.deployment.fingerprint


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"interval.bids": "0ms"}, "the option interval.bids is from 1ms to"),
        ({"interval.": "1s"}, "there is no option 'interval.'; did you mean interval.OPERATOR"),
        ({"interval.cuont": "1s"}, "interval.cuont is the interval of no task: .* bids, results "),
        ({"every_records": "-1"}, "the option every_records is a whole number from 0 to"),
    ],
)
def test_an_interval_that_cannot_be_is_one_sentence(given, message):
    with pytest.raises(UsageError, match=message):
        job_of(protocol="uncoordinated", options=given)


def test_what_only_tasks_by_themselves_can_choose_is_refused_for_rounds():
    for given in ({"interval.bids": "1s"}, {"every_records": 5}, {"at_window_close": "yes"}):
        with pytest.raises(UsageError, match="changes nothing under aligned, which heeds"):
            job_of(protocol="aligned", options=given)


def test_the_end_of_windows_is_no_time_where_there_are_none():
    with pytest.raises(UsageError, match="at_window_close is for dataflows with windows"):
        job_of(flow="q1", protocol="uncoordinated", options={"at_window_close": "yes"})
    job_of(flow="q1", protocol="uncoordinated", options={"at_window_close": "no"})


def test_an_interval_of_an_operator_is_remembered_and_repeated(tmp_path):
    spec = given_spec(protocol="uncoordinated", options={"interval.bids": "1.5s"})
    directory = RunDirectory.create(tmp_path, "q12", "uncoordinated", spec.said())
    assert spec_of(directory) == spec
    case = Case("uncoordinated", "q12", 1, options=(("interval.count", 1_500),))
    assert case.command().endswith("--option interval.count=1500ms")
    assert Case.from_json(case.to_json()) == case
