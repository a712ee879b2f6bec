"""How operators are protected: what users say in a dataflow and where it is run, and what is refused."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapline.core.policy import Intake, Policy, Stale
from snapline.dataflow.deploy import deploy
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.usage.policies import inputs_rule, save_rule
from snapline.errors import GraphError, UsageError


@dataclass
class Records:
    """An ingress of which only the shape matters here."""

    schema: dict[str, str] = field(
        default_factory=lambda: {"id": "int64", "key": "int64", "time": "int64"}
    )
    partitions: int = 2


def begun():
    flow = Dataflow("f")
    return flow, flow.source(Records(), name="in")


def counted():
    """A dataflow whose operator `count` has state, and the stream of what it puts out."""
    flow, records = begun()
    return flow, records.key_by("key").count(name="count")


def policy_of(flow, operator="count"):
    return flow.graph.nodes[operator].policy


# What is said in the dataflow.


def test_nobody_says_anything_about_most_operators():
    flow, counts = counted()
    counts.sink("out")
    found = deploy(flow, 1)
    assert (policy_of(flow), found.protected) == (None, ())
    assert [found.plans[task].policy.saved for task in found.plans] == [False, True, False]


def test_steps_add_up():
    flow, counts = counted()
    assert counts.checkpoint(every="10s", versions=3).inputs("keep") is counts
    said = Policy(saved=True, every_ms=10_000, versions=3, intake=Intake.KEEP)
    assert policy_of(flow) == said
    counts.sink("out")
    assert deploy(flow, 1).protected == ("count",)
    assert deploy(flow, 1).plans["count/0"].policy == said


@pytest.mark.parametrize(
    ("say", "policy"),
    [
        (lambda s: s.checkpoint(), Policy(saved=True)),
        (lambda s: s.checkpoint(every=500), Policy(saved=True, every_ms=500)),
        (lambda s: s.checkpoint(every="1s").checkpoint(versions=1), Policy(True, 1_000, 1)),
        (lambda s: s.checkpoint(stale="mark"), Policy(saved=True, stale=Stale.MARK)),
        (lambda s: s.inputs("wait", buffer=7), Policy(intake=Intake.WAIT, buffer=7)),
        (lambda s: s.inputs("drop"), Policy()),
        (lambda s: s.checkpoint().buffered(), Policy(saved=True, intake=Intake.KEEP)),
        (lambda s: s.buffered().inputs("keep"), Policy(intake=Intake.KEEP)),
        (lambda s: s.best_effort(), Policy(saved=False)),
        (lambda s: s.best_effort().best_effort(), Policy(saved=False)),
        (lambda s: s.best_effort().inputs("wait"), Policy(saved=False, intake=Intake.WAIT)),
    ],
)
def test_each_step_says_some_parts_of_a_policy(say, policy):
    flow, counts = counted()
    say(counts)
    assert policy_of(flow) == policy


@pytest.mark.parametrize(
    ("say", "message"),
    [
        (
            lambda s: s.best_effort().checkpoint(),
            r"'count' is never saved by best_effort\(\), and saved by checkpoint\(\): say one of",
        ),
        (lambda s: s.checkpoint().best_effort(), "'count' is saved by .*, and never saved by"),
        (lambda s: s.best_effort().buffered(), "'count' keeps its inputs, and is never saved"),
        (lambda s: s.buffered().best_effort(), "'count' keeps its inputs, and is never saved"),
        (
            lambda s: s.checkpoint(every="1s").checkpoint(every="2s"),
            "'count' is saved every 1s, and saved every 2s: say one of them",
        ),
        (lambda s: s.checkpoint(versions=2).checkpoint(versions=3), "keep 2 checkpoints, and to"),
        (lambda s: s.inputs("drop").inputs("wait"), r"inputs\('drop'\), and to have inputs\('w"),
        (lambda s: s.checkpoint(stale="drop").checkpoint(stale="mark"), "to drop stale windows"),
        (
            lambda s: s.inputs("wait", buffer=1).inputs("wait", buffer=2),
            "to hold back 1 messages of a channel, and to hold back 2",
        ),
        (lambda s: s.inputs("keep", buffer=3), r"buffer= is for inputs\(\"wait\"\)"),
        (lambda s: s.inputs("loose"), r"inputs\(...\) takes one of drop, wait, keep, not 'loose'"),
        (lambda s: s.inputs(None), "takes one of drop, wait, keep, not None"),
        (lambda s: s.checkpoint(stale="emit"), "takes one of drop, mark, not 'emit'"),
        (lambda s: s.checkpoint(every="soon"), "every=...* is written as 500ms"),
        (lambda s: s.checkpoint(every=0), "every=...* is from 1ms"),
        (lambda s: s.checkpoint(versions=0), "versions=...* is a whole number from 1 to 100"),
        (lambda s: s.inputs("wait", buffer=0), "buffer=...* is a whole number from 1"),
        (lambda s: s.inputs("wait", buffer="9"), "buffer=...* is a whole number from 1"),
        (lambda s: s.union(s).checkpoint(), "a union is no operator: protect its parts"),
    ],
)
def test_what_cannot_be_or_contradicts_itself_is_refused_where_it_is_said(say, message):
    _, counts = counted()
    with pytest.raises(UsageError, match=message):
        say(counts)


def test_a_keyed_stream_stays_keyed():
    flow, records = begun()
    records.map(lambda b: b, name="m").key_by("key").checkpoint(every="1s").count().sink("out")
    assert policy_of(flow, "m") == Policy(saved=True, every_ms=1_000)
    assert policy_of(flow, "count") is None


def test_a_source_has_no_inputs_but_can_be_saved():
    flow, records = begun()
    with pytest.raises(GraphError, match="'in' is a source, and has no inputs"):
        records.inputs("keep")
    records.checkpoint(every="1s")
    assert policy_of(flow, "in") == Policy(saved=True, every_ms=1_000)


def test_windows_are_protected_behind_what_is_made_of_them():
    _, records = begun()
    with pytest.raises(GraphError, match="say first what is made of a window"):
        records.key_by("key").tumbling("1s").checkpoint()


# What is said where the dataflow is run.


def test_what_is_said_at_a_run_replaces_what_the_dataflow_says():
    flow, counts = counted()
    counts.checkpoint(every="10s", versions=5).inputs("wait", buffer=9).sink("out")
    changed = flow.with_policies({"count": "1s", "in": "yes"}, {"count": "keep"})
    assert policy_of(changed) == Policy(True, 1_000, 5, Intake.KEEP)
    assert policy_of(changed, "in") == Policy(saved=True)
    assert policy_of(flow) == Policy(True, 10_000, 5, Intake.WAIT, 9)
    assert policy_of(flow.with_policies({"count": "no"}, {})).saved is False
    assert policy_of(flow.with_policies({}, {"count": "wait:50"})).buffer == 50


def test_the_fingerprint_has_the_policies():
    flow, counts = counted()
    counts.sink("out")
    changed = [({}, {}), ({"count": "1s"}, {}), ({"count": "2s"}, {}), ({}, {"count": "keep"})]
    found = {deploy(flow.with_policies(*each), 2).fingerprint for each in changed}
    assert len(found) == len(changed)


@pytest.mark.parametrize(
    ("save", "inputs", "message"),
    [
        ({"cuont": "1s"}, {}, "f has no operator 'cuont' to protect; did you mean count?"),
        ({}, {"cuont": "drop"}, "did you mean count?"),
        ({}, {"in": "keep"}, "'in' is a source, and has no inputs"),
        ({"count": "no"}, {"count": "keep"}, "'count' keeps its inputs, and is never saved"),
    ],
)
def test_what_cannot_be_said_at_a_run(save, inputs, message):
    flow, counts = counted()
    counts.sink("out")
    with pytest.raises(GraphError, match=message):
        flow.with_policies(save, inputs)


def test_texts_are_read_in_one_form():
    given = {"a": "1500ms", "b": "no", "c": True, "d": 2_000, "e": "yes", "f": False}
    read = (("a", "1500ms"), ("b", "no"), ("c", "yes"), ("d", "2s"), ("e", "yes"), ("f", "no"))
    assert save_rule(given, "save") == read
    assert save_rule([list(pair) for pair in read], "save") == read  # as JSON has it
    waits = (("a", "drop"), ("b", "keep"), ("c", "wait"), ("d", "wait:1000"))
    assert inputs_rule(dict(waits), "inputs") == waits


@pytest.mark.parametrize(
    "wrong", ["x", 3, None, [1], {"a": "soon"}, {"a": None}, {1: "1s"}, {"a": 0}]
)
def test_wrong_texts_about_saving_are_refused(wrong):
    with pytest.raises(UsageError, match="save"):
        save_rule(wrong, "save")


WRONG = ["x", 3, None, [1], {"a": "loose"}, {"a": None}, {"a": "wait:"}, {"a": "wait:0"}]


@pytest.mark.parametrize(
    "wrong", [*WRONG, {"a": "keep:3"}, {"a": "wait:9999999999"}, {"a": "wait:x"}]
)
def test_wrong_texts_about_inputs_are_refused(wrong):
    with pytest.raises(UsageError, match="inputs"):
        inputs_rule(wrong, "inputs")


# What is checked of the graph.


def test_what_has_no_state_and_is_not_saved_cannot_keep_its_inputs():
    flow, records = begun()
    mapped = records.map(lambda b: b, name="m").buffered()
    mapped.sink("out")
    with pytest.raises(GraphError, match="from 'in' to 'm' cannot be kept: 'm' has no state"):
        deploy(flow, 1)
    mapped.checkpoint()
    assert deploy(flow, 1).plans["m/0"].policy.saved


def fanned(**buffer):
    """`in` feeds `a` and `b`; `a` feeds `c`, for which senders wait."""
    flow, records = begun()
    behind = records.map(lambda b: b, name="a").map(lambda b: b, name="c")
    behind.inputs("wait", **buffer).sink("out")
    records.map(lambda b: b, name="b").sink("other")
    return flow


def test_nobody_waits_where_another_branch_would_stop():
    said = "from 'a' to 'c' cannot wait while 'c' is away: 'in' feeds 'b', too"
    with pytest.raises(GraphError, match=said):
        deploy(fanned(), 1)
    deploy(fanned(buffer=100), 1)


def test_a_sender_waits_where_all_that_it_feeds_is_the_operator_that_is_away():
    flow, records = begun()
    left = records.map(lambda b: b, name="a").key_by("key")
    right = records.map(lambda b: b, name="b").key_by("key")
    left.join(right, name="j").inputs("wait").sink("out")
    deploy(flow, 1)


def test_a_late_output_is_a_branch_too():
    flow, records = begun()
    windows = records.key_by("key").tumbling("1s").count(name="w")
    windows.map(lambda b: b, name="m").inputs("wait").sink("out")
    windows.output("late").sink("late")
    with pytest.raises(GraphError, match="'w' feeds 'late', too"):
        deploy(flow, 1)


def test_stale_windows_are_only_marked_where_somebody_takes_them():
    flow, records = begun()
    windows = records.key_by("key").tumbling("1s").count(name="w").checkpoint(stale="mark")
    windows.sink("out")
    with pytest.raises(GraphError, match="on its output 'tentative', and nobody takes it"):
        deploy(flow, 1)
    windows.output("tentative").sink("guesses")
    assert deploy(flow, 1).plans["w/0"].policy.stale is Stale.MARK


def test_only_windows_can_be_stale():
    flow, counts = counted()
    counts.checkpoint(stale="drop").sink("out")
    with pytest.raises(GraphError, match="'count' has no windows that could be stale"):
        deploy(flow, 1)


# What becomes one task.


def test_a_sink_is_protected_as_its_input_is():
    flow, counts = counted()
    counts.checkpoint(every="1s").sink("out")
    plans = deploy(flow, 1, lean=True).plans
    assert list(plans) == ["in/0", "out/0"]
    assert plans["out/0"].policy == Policy(saved=True, every_ms=1_000)


def test_operators_that_are_protected_differently_are_two_tasks():
    flow, records = begun()
    first = records.map(lambda b: b, name="a").best_effort()
    first.map(lambda b: b, name="b").sink("out")
    plans = deploy(flow, 1, lean=True).plans
    assert {task: plan.policy.saved for task, plan in plans.items()} == {
        "in/0": False,
        "a/0": False,
        "out/0": False,
    }


@given(
    st.sampled_from(["yes", "no", "1s", None]), st.sampled_from(["drop", "wait:5", "keep", None])
)
def test_the_shell_and_the_dataflow_say_the_same(save, inputs):
    said, counts = counted()
    steps = {"yes": {}, "1s": {"every": "1s"}}
    try:
        if save is not None:
            _ = counts.best_effort() if save == "no" else counts.checkpoint(**steps[save])
        if inputs is not None:
            how, _, size = inputs.partition(":")
            counts.inputs(how, buffer=int(size) if size else None)
    except GraphError:
        assert (save, inputs) == ("no", "keep")
        return
    flow, _ = counted()
    given_save = {} if save is None else {"count": save}
    given_inputs = {} if inputs is None else {"count": inputs}
    assert policy_of(flow.with_policies(given_save, given_inputs)) == policy_of(said)
