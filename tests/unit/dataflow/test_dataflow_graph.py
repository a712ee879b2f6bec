"""What can be built, what it becomes, and what is refused."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from snapline.batch import Batch
from snapline.dataflow.deploy import deploy
from snapline.dataflow.graph import (
    Broadcast,
    ByKey,
    Dataflow,
    Edge,
    Node,
    OneToOne,
    OperatorContext,
)
from snapline.dataflow.logical import Graph
from snapline.dataflow.operators.operator import Operator
from snapline.durations import millis
from snapline.errors import GraphError, UsageError
from snapline.workload.common.own import generated, records


@dataclass
class Records:
    """An ingress of which only the shape matters here."""

    schema: dict[str, str] = field(default_factory=lambda: {"id": "int64", "time": "int64"})
    partitions: int = 4


class Timed(Operator):
    uses_time = True


def channels(deployment, task, output="out"):
    routes = [route for route in deployment.plans[task].routes if route.output == output]
    return [[channel.id for channel in route.channels] for route in routes]


def test_every_slot_hosts_one_task_of_every_operator():
    flow = Dataflow("f")
    flow.source(Records(), name="in").map(lambda b: b, name="step").sink("out")
    deployment = deploy(flow, 2)
    assert deployment.topology.tasks == ("in/0", "in/1", "step/0", "step/1", "out/0", "out/1")
    assert deployment.sinks == {"out": ("out/0", "out/1")}
    assert [deployment.plans[task].slot for task in deployment.topology.tasks] == [0, 1] * 3
    assert deployment.plans["out/1"].sink == "out"
    assert deployment.plans["step/1"].sink is None
    assert (deployment.name, deployment.slots) == ("f", 2)


def test_partitions_are_dealt_out_to_the_slots():
    flow = Dataflow("f")
    flow.source(Records(partitions=5), name="in").sink("out")
    plans = deploy(flow, 3).plans
    assert [plans[f"in/{i}"].partitions for i in range(3)] == [(0, 3), (1, 4), (2,)]
    assert plans["out/0"].partitions == ()
    assert plans["out/0"].ingress is None


def test_the_route_is_what_stands_before_the_operator():
    flow = Dataflow("f")
    source = flow.source(Records(), name="in")
    source.map(lambda b: b, name="same")
    source.key_by("id").map(lambda b: b, name="keyed")
    source.broadcast().map(lambda b: b, name="all")
    source.sink("out")
    deployment = deploy(flow, 2)
    assert channels(deployment, "in/1") == [
        ["in/1>same/1"],
        ["in/1>keyed/0", "in/1>keyed/1"],
        ["in/1>all/0", "in/1>all/1"],
        ["in/1>out/1"],
    ]
    routings = [route.routing for route in deployment.plans["in/1"].routes]
    assert routings == [OneToOne(), ByKey(("id",)), Broadcast(), OneToOne()]


def test_a_loop_feeds_a_port_of_its_own_and_carries_no_time():
    flow = Dataflow("f")
    loop = flow.feedback()
    joined = (
        flow.source(Records(), name="in")
        .key_by("id")
        .apply(Timed, name="join", ports={"back": loop})
    )
    joined.key_by("id").feed(loop)
    joined.sink("out")
    deployment = deploy(flow, 2)
    back, out = deployment.plans["join/0"].routes
    assert [channel.id for channel in back.channels] == ["join/0>join/0#back", "join/0>join/1#back"]
    assert all(channel.feedback and channel.port == "back" for channel in back.channels)
    assert (back.timed, out.timed) == (False, False)
    assert deployment.plans["in/0"].routes[0].timed
    assert deployment.topology.cyclic


def test_time_is_not_asked_for_through_a_loop():
    flow = Dataflow("f")
    loop = flow.feedback()
    timed = flow.source(Records(), name="in").apply(Timed, name="timed", ports={"back": loop})
    timed.map(lambda b: b, name="again").feed(loop)
    timed.sink("out")
    plans = deploy(flow, 1).plans
    assert [route.timed for route in plans["in/0"].routes] == [True]
    assert [route.timed for route in plans["timed/0"].routes] == [False, False]


def test_watermarks_go_where_an_operator_downstream_needs_them():
    flow = Dataflow("f")
    source = flow.source(Records(), name="in")
    source.map(lambda b: b, name="a").apply(Timed, name="timed").map(lambda b: b, name="c").sink(
        "out"
    )
    source.map(lambda b: b, name="b").sink("other")
    plans = deploy(flow, 1).plans
    timed = {(t, r.channels[0].target): r.timed for t, plan in plans.items() for r in plan.routes}
    assert [edge for edge in timed if timed[edge]] == [("in/0", "a/0"), ("a/0", "timed/0")]


def test_two_outputs_into_one_port_are_two_channels():
    flow = Dataflow("f")
    counted = flow.source(Records(), name="in").apply(Operator, name="op")
    counted.union(counted.output("late")).sink("out")
    deployment = deploy(flow, 1)
    assert channels(deployment, "op/0") == [["op/0>out/0"]]
    assert channels(deployment, "op/0", "late") == [["op/0>out/0~2"]]
    assert len(deployment.topology.by_id) == 3


def test_a_join_has_two_ports():
    flow = Dataflow("f")
    left, right = flow.source(Records(), name="l"), flow.source(Records(), name="r")
    left.key_by("id").join(right.key_by("id"), name="join").sink("out")
    deployment = deploy(flow, 1)
    assert channels(deployment, "l/0") == [["l/0>join/0#left"]]
    assert channels(deployment, "r/0") == [["r/0>join/0#right"]]
    assert deployment.plans["join/0"].stateful
    assert not deployment.plans["l/0"].stateful


def test_every_task_gets_an_operator_of_its_own_that_knows_its_place():
    class Placed(Operator):
        def __init__(self, context: OperatorContext) -> None:
            self.context = context

    flow = Dataflow("f")
    flow.source(Records(), name="in").apply(Placed, name="op").sink("out")
    plans = deploy(flow, 3).plans
    built: list[Any] = [plans[f"op/{i}"].operator() for i in range(3)]
    assert [operator.context for operator in built] == [OperatorContext(i, 3) for i in range(3)]
    assert plans["op/0"].operator() is not plans["op/0"].operator()


def test_names_are_given_where_the_user_gives_none():
    flow = Dataflow("f")
    flow.source(Records()).map(lambda b: b).map(lambda b: b).filter(lambda b: b["id"] > 0).sink(
        "out"
    )
    assert list(flow.graph.nodes) == ["source", "map", "map-2", "filter", "out"]


def test_a_count_of_windows_is_the_aggregate_and_a_running_count_has_a_name_of_its_own():
    flow = Dataflow("f")
    windows = flow.source(Records(), name="in").key_by("id").tumbling("10ms")
    windows.count().sink("counts")
    windows.running_count().sink("running")
    plans = deploy(flow, 1).plans
    count, running = (plans[f"{name}/0"].operator() for name in ("window-count", "running-count"))
    records = Batch.of(id=[7, 7, 8], time=[3, 5, 4])
    assert list(count.process("in", records)) == []
    ((_, closed),) = count.on_watermark(10)
    assert list(closed.columns) == ["id", "window", "count", "time"]
    rows_of = zip(*(closed[name].tolist() for name in closed.columns), strict=True)
    assert sorted(rows_of) == [(7, 0, 2, 5), (8, 0, 1, 4)]
    ((_, rows),) = running.process("in", records)
    assert rows["count"].tolist() == [1, 2, 1]
    assert list(running.on_watermark(10)) == []


def test_tasks_stand_in_topological_order_without_feedback():
    graph = Graph("g")
    for name in ("out", "b", "a", "in"):
        graph.add(Node(name, Operator, ingress=Records() if name == "in" else None))
    for source, target in (("in", "a"), ("a", "b"), ("b", "out")):
        graph.connect(Edge(source, target, OneToOne()))
    graph.connect(Edge("b", "a", OneToOne(), port="back", feedback=True))
    assert graph.order() == ("in", "a", "b", "out")


def windowed(size, name="f", partitions=4):
    flow = Dataflow(name)
    source = flow.source(Records(partitions=partitions), name="in")
    source.key_by("id").tumbling(size).count(name="n").sink("out")
    return flow


def test_the_fingerprint_tells_graphs_apart():
    first = deploy(windowed("10s"), 2).fingerprint
    assert deploy(windowed(10_000), 2).fingerprint == first
    others = [
        deploy(windowed("10s"), 3),
        deploy(windowed("11s"), 2),
        deploy(windowed("10s", name="g"), 2),
        deploy(windowed("10s", partitions=5), 2),
    ]
    assert len({first, *(other.fingerprint for other in others)}) == 5


# What is refused.


def test_a_dataflow_needs_a_source_and_a_sink():
    flow = Dataflow("f")
    with pytest.raises(GraphError, match="no source"):
        deploy(flow, 1)
    flow.source(Records())
    with pytest.raises(GraphError, match="no sink"):
        deploy(flow, 1)


def test_a_cycle_must_be_declared():
    graph = Graph("g")
    graph.add(Node("in", Operator, ingress=Records()))
    for name in ("a", "b"):
        graph.add(Node(name, Operator, is_sink=True))
    for source, target in (("in", "a"), ("a", "b"), ("b", "a")):
        graph.connect(Edge(source, target, OneToOne()))
    with pytest.raises(GraphError, match="cycle through a, b"):
        graph.validate()


def test_a_task_that_is_no_source_needs_a_regular_input():
    graph = Graph("g")
    graph.add(Node("in", Operator, ingress=Records()))
    graph.add(Node("a", Operator, is_sink=True))
    graph.connect(Edge("a", "a", OneToOne(), feedback=True))
    with pytest.raises(GraphError, match="'a' has no regular input"):
        graph.validate()


def test_a_source_takes_no_input():
    graph = Graph("g")
    graph.add(Node("in", Operator, ingress=Records(), is_sink=True))
    graph.connect(Edge("in", "in", OneToOne(), feedback=True))
    with pytest.raises(GraphError, match="is a source"):
        graph.validate()


def test_names_are_unique_and_free_of_signs():
    flow = Dataflow("f")
    source = flow.source(Records(), name="in")
    with pytest.raises(GraphError, match="two operators are called 'in'"):
        source.map(lambda b: b, name="in")
    for name in ("a/b", "a>b", "a#b", "a~b"):
        with pytest.raises(GraphError, match="is no name"):
            source.map(lambda b: b, name=name)


def test_an_edge_joins_operators_that_exist():
    graph = Graph("g")
    graph.add(Node("in", Operator, ingress=Records()))
    with pytest.raises(GraphError, match="names 'nobody'"):
        graph.connect(Edge("in", "nobody", OneToOne()))


def test_keys_must_be_columns_where_the_columns_are_known():
    source = Dataflow("f").source(Records(), name="in")
    with pytest.raises(GraphError, match=r"'in' has no column user .* it has id, time"):
        source.key_by("user")
    with pytest.raises(GraphError, match="has no column user"):
        source.filter(lambda b: b["id"] > 0).key_by("id", "user")
    with pytest.raises(GraphError, match="has no column price"):
        source.key_by("id").count().key_by("price")
    with pytest.raises(GraphError, match="at least one column"):
        source.key_by()
    source.map(lambda b: b).key_by("anything")


def test_windows_need_a_column_of_time_and_a_size():
    source = Dataflow("f").source(Records(), name="in").key_by("id")
    with pytest.raises(GraphError, match="no column 'when'"):
        source.tumbling("10s", time="when")
    with pytest.raises(GraphError, match="size of a window is at least 1ms, not 0ms"):
        source.tumbling(0)
    with pytest.raises(UsageError, match="a duration is written as 500ms, 20s"):
        source.tumbling("soon")


def test_results_do_not_hide_keys():
    source = Dataflow("f").source(Records({"window": "int64", "time": "int64"}), name="in")
    with pytest.raises(GraphError, match="cannot be called window"):
        source.key_by("window").tumbling("1s").running_count()
    with pytest.raises(GraphError, match="cannot be called window"):
        source.key_by("window").tumbling("1s").count()
    with pytest.raises(GraphError, match="cannot be called time"):
        source.key_by("time").tumbling("1s").aggregate(n="count")
    with pytest.raises(GraphError, match="cannot be called 'window'"):
        source.map(lambda b: b).key_by("a").tumbling("1s").aggregate(window="count")
    with pytest.raises(GraphError, match="'mean' is no aggregate"):
        source.map(lambda b: b).key_by("a").tumbling("1s").aggregate(m=("mean", "x"))


def test_a_join_needs_keys_of_one_length_on_both_sides():
    flow = Dataflow("f")
    source = flow.source(Records(), name="in")
    with pytest.raises(GraphError, match="same number of columns"):
        source.key_by("id").join(source.key_by("id", "time"))
    with pytest.raises(GraphError, match="same number of columns"):
        source.key_by("id").window_join(source, "1s")


def test_streams_of_two_dataflows_do_not_meet():
    one, two = Dataflow("one").source(Records()), Dataflow("two").source(Records())
    with pytest.raises(GraphError, match="different dataflows"):
        one.union(two)
    with pytest.raises(GraphError, match="different dataflows"):
        one.key_by("id").join(two.key_by("id"))


def test_a_union_is_routed_as_a_whole():
    flow = Dataflow("f")
    one, two = flow.source(Records(), name="one"), flow.source(Records(), name="two")
    with pytest.raises(GraphError, match="before key_by"):
        one.union(two.key_by("id"))
    with pytest.raises(GraphError, match="no outputs of its own"):
        one.union(two).output("late")
    one.union(two).key_by("id").count(name="n").sink("out")
    assert [channel.id for channel in deploy(flow, 1).topology.inputs["n/0"]] == [
        "one/0>n/0",
        "two/0>n/0",
    ]


def test_a_loop_is_taken_once_and_fed():
    flow = Dataflow("f")
    loop, source = flow.feedback("paths"), flow.source(Records(), name="in")
    with pytest.raises(GraphError, match="no operator takes the loop 'paths'"):
        source.feed(loop)
    taken = source.apply(Operator, name="a", ports={"back": loop})
    with pytest.raises(GraphError, match="already leads to 'a'"):
        source.apply(Operator, name="b", ports={"back": loop})
    taken.sink("out")
    with pytest.raises(GraphError, match="nothing is fed into the loop 'paths'"):
        deploy(flow, 1)


def test_a_deployment_needs_a_slot():
    with pytest.raises(GraphError, match="at least one slot"):
        deploy(windowed("1s"), 0)


@pytest.mark.parametrize(
    ("text", "ms"),
    [("500ms", 500), ("10s", 10_000), ("2m", 120_000), ("1h", 3_600_000), (7, 7)],
)
def test_durations_are_written_as_people_write_them(text, ms):
    assert millis(text) == ms


def test_a_dataflow_computes_what_it_says():
    """The operators of a deployment, driven by hand along one slot."""
    flow = Dataflow("f")
    source = flow.source(Records(), name="in")
    folded = source.map_records(lambda r: {**r, "id": r["id"] % 2}, name="halve").key_by("id")
    step = lambda state, batch: {"top": state["top"] + batch["time"]}  # noqa: E731
    folded.fold({"top": 0}, step, name="sum").sink("out")
    plans, batch = deploy(flow, 1).plans, Batch.of(id=[1, 2, 3], time=[10, 20, 30])
    for task in ("in/0", "halve/0", "sum/0", "out/0"):
        ((_, batch),) = plans[task].operator().process("in", batch)
    assert batch.to_pydict() == {"id": [1, 0, 1], "time": [10, 20, 30], "top": [10, 20, 40]}


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda s: s.key_by(["id"]), "key_by takes names of columns, .* not \\['id'\\]"),
        (lambda s: s.key_by(3), "key_by takes names of columns, .* not 3"),
        (lambda s: s.key_by(len), "key_by takes names of columns, .* not <built-in"),
        (lambda s: s.map(None), "map takes a function of a batch, not None"),
        (lambda s: s.flat_map({}), "flat_map takes a function of a batch, not {}"),
        (lambda s: s.filter(True), "filter takes a function of a batch, not True"),
        (lambda s: s.map_records("x"), "map_records takes a function of a record, not 'x'"),
        (lambda s: s.apply(Operator(), name="o"), "apply takes the class of an operator, .* not <"),
        (lambda s: s.apply(Operator, name="o", ports=["a"]), "a dict of streams and loops, not"),
        (lambda s: s.apply(Operator, name="o", ports={"a": "b"}), "streams and loops, not 'b'"),
        (lambda s: s.union("x"), "union takes streams, not 'x'"),
        (lambda s: s.key_by("id").fold([], len), "fold takes a dict of values to begin with"),
        (lambda s: s.key_by("id").fold({"n": 0}, 3), "a function of the state and a batch, not 3"),
        (lambda s: s.key_by("id").tumbling(5).aggregate(n=None), "'n' is 'count', or a pair"),
        (lambda s: s.key_by("id").tumbling(5).aggregate(n="max"), "'n' is 'count', or a pair"),
        (lambda s: s.key_by("id").tumbling(5).aggregate(n=("max", "id", 1)), "'n' is 'count', or"),
        (lambda s: s.key_by("id").tumbling(5).aggregate(n=("max", "idd")), "no column 'idd' for"),
        (lambda s: s.sink(3), "a name is a text, not 3"),
        (lambda s: s.apply(Operator, name=3), "a name is a text, not 3"),
    ],
)
def test_what_a_step_cannot_take_is_refused_in_the_line_that_says_it(build, said):
    with pytest.raises(GraphError, match=said):
        build(Dataflow("wrong").source(Records()))


@pytest.mark.parametrize("name", ["..", ".", ".hidden", "a.obj", "a\0b", "\x1b[31m", "x" * 121])
def test_a_name_of_which_no_file_can_be_made_is_refused(name):
    """The store refused the snapshots of such an operator each time, and a run tried again for ever."""
    with pytest.raises(GraphError, match=r"is no name|is too long for a name"):
        Dataflow("wrong").source(Records()).sink(name)


def test_a_source_that_is_no_input_is_refused():
    with pytest.raises(GraphError, match=r"an input as sl.records\(...\), not 3"):
        Dataflow("wrong").source(3)


@pytest.mark.parametrize("rate", [None, "5", 1.5, float("nan"), True, 0, -1])
def test_a_rate_that_is_no_number_of_records_is_refused(rate):
    for make in (lambda: records([{"a": 1}], rate=rate), lambda: generated(dict, rate=rate)):
        with pytest.raises(UsageError, match="rate is a whole number of records per second"):
            make()


@pytest.mark.parametrize("rows", [None, "abc", 3, [3], [{"a": 1}, None], ["ab"]])
def test_records_that_are_no_dicts_are_refused(rows):
    with pytest.raises(UsageError, match=r"a list of dicts, or a Batch|not a dict of its columns"):
        records(rows, rate=5)


def test_a_rule_that_is_none_or_returns_no_columns_is_refused():
    with pytest.raises(UsageError, match="rule is a function from numbers to columns, not None"):
        generated(None, rate=5)
    nothing: Any = None
    with pytest.raises(TypeError, match="the rule returned None where a dict of columns should be"):
        Dataflow("wrong").source(generated(lambda n: nothing, rate=5))
