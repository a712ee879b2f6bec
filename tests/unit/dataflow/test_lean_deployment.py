"""Lean deployments: which operators run as one task, what they remember, and which columns are sent."""

from dataclasses import dataclass, field

from snapline.batch import Batch
from snapline.dataflow.chain import Chain, owner_of
from snapline.dataflow.deploy import deploy
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.logical import OperatorContext
from snapline.dataflow.operators.join import Join
from snapline.dataflow.operators.operator import Capture, Operator
from snapline.dataflow.partition import split


@dataclass
class Records:
    """An ingress of which only the shape matters here."""

    schema: dict[str, str] = field(default_factory=lambda: {"id": "int64", "key": "int64"})
    partitions: int = 2


class Sum(Operator):
    """Adds up ids and puts the sum out; a watermark puts it out, too. Its deltas are what was added."""

    uses_time = True

    def __init__(self, always_whole=False):
        self.total = self.added = 0
        self.always_whole = always_whole

    def process(self, port, batch):
        self.added += int(batch["id"].sum())
        self.total += int(batch["id"].sum())
        return (("out", Batch.of(id=[self.total])), ("late", batch))

    def on_watermark(self, time):
        return (("out", Batch.of(id=[self.total + time])),)

    def capture(self, *, full):
        whole = full or self.always_whole
        number = self.total if whole else self.added
        self.added = 0
        return Capture(whole, {"sum": Batch.of(n=[number])} if whole or number else {})

    def restore(self, captures):
        assert [c.full for c in captures] == [True] + [False] * (len(captures) - 1)
        self.total = sum(int(c.parts["sum"]["n"][0]) for c in captures if c.parts)


def chain_of(*operators):
    """These operators, named a, b, ..., in one chain, as a deployment builds it."""
    flow = Dataflow("f")
    stream = flow.source(Records(), name="in").key_by("key")
    for name, operator in zip("abc", operators, strict=False):
        stream = stream.apply(lambda operator=operator: operator, name=name)
    stream.sink("out")
    plan = deploy(flow, 1, lean=True).plans["out/0"]
    return plan.operator()


def ids(outputs):
    return [(name, batch["id"].tolist()) for name, batch in outputs]


def test_what_is_handed_on_unchanged_runs_as_one_task_and_a_shuffle_keeps_tasks_apart():
    flow = Dataflow("f")
    stream = flow.source(Records(), name="in").map(lambda b: b, name="step").key_by("key")
    stream.count(name="count").filter(lambda b: b["count"] > 1, name="twice").sink("out")
    deployment = deploy(flow, 2, lean=True)
    assert deployment.topology.tasks == ("in/0", "in/1", "out/0", "out/1")
    assert deployment.sinks == {"out": ("out/0", "out/1")}
    assert deployment.plans["in/1"].partitions == (1,)
    assert deployment.plans["out/1"].sink == "out"
    assert [channel.id for channel in deployment.topology.inputs["out/1"]] == [
        "in/0>out/1",
        "in/1>out/1",
    ]


def test_a_flow_without_a_shuffle_is_one_task_per_slot():
    flow = Dataflow("f")
    flow.source(Records(), name="in").map(lambda b: b, name="step").sink("out")
    deployment = deploy(flow, 2, lean=True)
    assert deployment.topology.tasks == ("out/0", "out/1")
    assert deployment.plans["out/0"].ingress is not None
    assert deployment.topology.channels == ()


def test_who_has_two_receivers_or_two_senders_is_not_chained():
    flow = Dataflow("f")
    stream = flow.source(Records(), name="in")
    one, other = stream.map(lambda b: b, name="one"), stream.map(lambda b: b, name="other")
    one.union(other).map(lambda b: b, name="both").sink("out")
    tasks = deploy(flow, 1, lean=True).topology.tasks
    assert tasks == ("in/0", "one/0", "other/0", "out/0")


def test_stored_state_of_chains_is_not_taken_for_that_of_single_operators():
    flow = Dataflow("f")
    flow.source(Records(), name="in").sink("out")
    assert deploy(flow, 1, lean=True).fingerprint != deploy(flow, 1).fingerprint


def test_each_member_gets_what_the_one_before_puts_out_and_only_the_last_has_side_outputs():
    chain = chain_of(Sum(), Sum())
    assert ids(chain.process("in", Batch.of(id=[1, 2]))) == [("out", [3])]
    assert ids(chain.process("in", Batch.of(id=[4]))) == [("out", [10])]


def test_a_watermark_reaches_a_member_behind_what_it_makes_the_ones_before_put_out():
    chain = chain_of(Sum(), Sum())
    assert chain.uses_time
    chain.process("in", Batch.of(id=[1]))
    # a puts out 1 + 100, which makes b put out 1 + 101; then b itself puts out 102 + 100
    assert ids(chain.on_watermark(100)) == [("out", [102]), ("out", [202])]


def test_a_chain_of_operators_without_time_does_not_ask_for_it():
    assert not chain_of(Operator(), Operator()).uses_time


def test_every_member_takes_back_its_own_state_from_its_last_whole_capture_on():
    chain = chain_of(Sum(), Sum(always_whole=True), Operator())
    captures = [chain.capture(full=True)]
    for number in (5, 6):
        chain.process("in", Batch.of(id=[number]))
        captures.append(chain.capture(full=False))
    captures.append(chain.capture(full=False))  # nothing has changed
    assert [capture.full for capture in captures] == [True, False, False, False]
    again = chain_of(Sum(), Sum(always_whole=True), Operator())
    again.restore(captures)
    whole, same = (c.capture(full=True).parts for c in (chain, again))
    assert {name: part["n"].tolist() for name, part in whole.items()} == {
        "a/sum": [11],
        "b/sum": [16],
    }
    assert {name: part["n"].tolist() for name, part in same.items()} == {
        name: part["n"].tolist() for name, part in whole.items()
    }


def test_a_chain_grows_by_what_its_members_grow_by():
    join = Join(("id",), ("id",))
    chain = chain_of(join, Sum(always_whole=True))
    chain.capture(full=True)
    chain.process("left", Batch.of(id=[1, 2, 3]))
    capture = chain.capture(full=False)
    assert not capture.full
    assert capture.grown == 3 * 8


def test_a_part_says_whose_it_is():
    assert owner_of("results", "count/counts") == ("count", "counts")
    assert owner_of("count", "counts") == ("count", "counts")


def test_members_are_built_for_their_place():
    places = []

    def build(context: OperatorContext):
        places.append(context)
        return Operator()

    flow = Dataflow("f")
    flow.source(Records(), name="in").apply(build, name="step").sink("out")
    plans = deploy(flow, 2, lean=True).plans
    places.clear()
    assert isinstance(plans["out/1"].operator(), Chain)
    assert places == [OperatorContext(1, 2)]


def sent_to(build, **deployment):
    """The columns of a message into the operator that `build` adds behind a source of four columns."""
    kinds = dict.fromkeys(("id", "time", "key", "price"), "int64")
    flow = Dataflow("f")
    build(flow.source(Records(kinds), name="in"))
    (route,) = deploy(flow, 1, **deployment).plans["in/0"].routes
    batch = Batch.of(id=[1], time=[2], key=[3], price=[4])
    ((_, message),) = split(route, batch)
    return list(message.columns)


def test_a_message_carries_only_what_its_receiver_reads():
    def windowed(stream):
        stream.key_by("key").tumbling("1s").running_count().sink("out")

    def highest(stream):
        windows = stream.key_by("key").tumbling("1s")
        windows.aggregate(n="count", most=("max", "price"), times=("collect", "time")).sink("out")

    assert sent_to(windowed, lean=True) == ["time", "key"]
    assert sent_to(windowed) == ["id", "time", "key", "price"]
    assert sent_to(highest, lean=True) == ["time", "key", "price"]
    assert sent_to(lambda s: s.key_by("key").count().sink("out"), lean=True) == ["time", "key"]


def test_who_passes_records_on_gets_all_of_them():
    def with_late(stream):
        counts = stream.key_by("key").tumbling("1s").count()
        counts.sink("out")
        counts.output("late").sink("late")

    everything = ["id", "time", "key", "price"]
    assert sent_to(with_late, lean=True) == everything
    assert (
        sent_to(lambda s: s.key_by("key").apply(Sum, name="sum").sink("out"), lean=True)
        == everything
    )


def test_the_columns_that_choose_the_receiver_are_always_sent():
    class Reader(Operator):
        reads = ("price",)

    build = lambda s: s.key_by("key").apply(Reader, name="reader").sink("out")  # noqa: E731
    assert sent_to(build, lean=True) == ["key", "price"]


def test_a_chain_ends_with_what_its_idle_last_member_would_pass_on():
    outputs = chain_of(Sum()).process("in", Batch.of(id=[1, 2], key=[0, 0]))
    assert [(name, batch.to_pydict()) for name, batch in outputs] == [("out", {"id": [3]})]


def test_a_chain_of_idle_members_passes_everything_on():
    batch = Batch.of(id=[1, 2], key=[0, 0])
    assert chain_of(Operator()).process("in", batch) == ((("out", batch)),)
