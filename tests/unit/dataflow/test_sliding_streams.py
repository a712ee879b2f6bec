"""Sliding windows as users write them: what is built, what comes out, and what is refused."""

import numpy as np
import pytest

import snapline as sl
from interleaver import Interleaver
from snapline.dataflow.deploy import deploy
from snapline.engine.reference.rehearsal import rehearse
from snapline.errors import GraphError, UsageError

PARTITIONS, DURATION_MS = 3, 4_000


def flow_of(build):
    flow = sl.Dataflow("f")
    numbers = sl.generated(lambda n: {"key": n % 5, "price": n * 7 % 31}, rate=100)
    build(flow.source(numbers, name="in")).sink("out")
    return flow.bind(PARTITIONS, DURATION_MS)


def output(build, seed=0, slots=3):
    return Interleaver(flow_of(build), slots, seed, {}).run().output["out"]


def records_of(build):
    source = flow_of(build).graph.nodes["in"].bound
    parts = [source.read(p, 0, source.end(p)).rows() for p in range(PARTITIONS)]
    names = source.read(0, 0, 1).columns
    return [dict(zip(names, row, strict=True)) for rows in parts for row in rows]


def by_time(stream):
    return stream.sliding("1s", every="250ms").aggregate(n="count", top=("max", "price"))


def by_rows(stream):
    return stream.sliding(rows=10).aggregate(n="count", top=("max", "price"))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("keys", [("key",), ()], ids=["per key", "over all"])
def test_windows_by_time_are_the_same_in_every_interleaving(keys, seed):
    def build(stream):
        return by_time(stream.key_by(*keys) if keys else stream)

    expected = {}
    for row in records_of(build):
        for start in range(row["time"] // 250 * 250 - 750, row["time"] + 1, 250):
            key = (*(row[k] for k in keys), start)
            expected.setdefault(key, []).append(row)
    batch = output(build, seed)
    found = {
        tuple(row[name] for name in (*keys, "window")): (row["n"], row["top"], row["time"])
        for row in (dict(zip(batch.columns, r, strict=True)) for r in batch.rows())
    }
    assert len(found) == batch.length
    assert found == {
        key: (len(rows), max(r["price"] for r in rows), max(r["time"] for r in rows))
        for key, rows in expected.items()
    }


@pytest.mark.parametrize("keys", [("key",), ()], ids=["per key", "over all"])
def test_windows_by_rows_put_out_a_result_for_every_record(keys):
    def build(stream):
        return by_rows(stream.key_by(*keys) if keys else stream)

    batch = output(build)
    assert sorted(batch.columns) == sorted([*keys, "time", "n", "top"])
    assert sorted(batch["time"]) == sorted(row["time"] for row in records_of(build))
    groups = 5 if keys else 1
    short = batch["n"][batch["n"] < 10]
    assert sorted(short) == sorted(list(range(1, 10)) * groups), "all records are in one place"


def test_without_a_key_all_records_go_to_one_task():
    plans = deploy(flow_of(by_rows), 3).plans
    (route,) = plans["in/1"].routes
    assert [channel.id for channel in route.channels] == [
        f"in/1>sliding/{slot}" for slot in range(3)
    ]
    state = Interleaver(flow_of(by_rows), 3, 1, {}).run().state["sliding"]
    assert state["rows"].length == 10, "one task has the last ten, the others nothing"


@pytest.mark.parametrize("build", [by_time, by_rows, lambda s: by_time(s.key_by("key"))])
@pytest.mark.parametrize("lean", [False, True], ids=["apart", "lean"])
def test_sliding_windows_survive_a_rehearsal(build, lean):
    deployment = deploy(flow_of(build), 2, lean=lean)
    assert rehearse(deployment, 0)[1] is None


def test_records_behind_a_window_go_to_the_output_late():
    flow = flow_of(lambda s: s.key_by("key").sliding("1s", every="500ms").count().output("late"))
    deployment = deploy(flow, 1)
    operator = deployment.plans["sliding-count/0"].operator()
    operator.process("in", sl.Batch.of(key=[1], time=[5_000]))
    operator.on_watermark(5_000)
    ((name, batch),) = operator.process("in", sl.Batch.of(key=[1, 1], time=[100, 4_600]))
    assert (name, batch["time"].tolist()) == ("late", [100])
    ((_, out),) = operator.on_watermark(5_500)
    assert out.rows() == [(1, 4_500, 2, 5_000)], "the other one counts where windows are open"


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda s: s.sliding("10s"), "takes a size and every="),
        (lambda s: s.sliding(), "or rows=, as in sliding"),
        (lambda s: s.sliding("10s", rows=5), "by rows or by time"),
        (lambda s: s.sliding("10s", every="3s"), "10000ms cannot begin every 3000ms"),
        (lambda s: s.sliding("10s", every="0s"), "at least 1ms"),
        (lambda s: s.sliding("soon", every="1s"), "the size of a window is written as 500ms"),
        (lambda s: s.sliding("10s", every="1s", time="at"), "no column 'at' for the windows"),
        (lambda s: s.sliding("10s", every="1s", time=["a"]), "takes the name of a column"),
        (lambda s: s.sliding(rows=3, time="price"), "by rows or by time"),
        (
            lambda s: s.sliding(rows=3).aggregate(n=("count", "price")),
            "a count is of records, not of 'price': write n='count'",
        ),
        (lambda s: s.sliding(rows=-1), "from 1 to"),
        (lambda s: s.sliding(rows=0).count(), "of 0 rows has no results"),
        (lambda s: s.sliding(rows="many"), "from 1 to"),
        (lambda s: s.sliding(rows=True), "from 1 to"),
        (lambda s: s.sliding(rows=3).aggregate(), "say what is computed"),
        (lambda s: s.sliding(rows=3).aggregate(x="sum"), "a pair as"),
        (lambda s: s.sliding(rows=3).aggregate(x=("median", "price")), "'median' is no aggregate"),
        (
            lambda s: s.sliding(rows=3).aggregate(x=("collect", "price")),
            "'collect' is no aggregate",
        ),
        (lambda s: s.sliding(rows=3).aggregate(x=("mean", "cost")), "no column 'cost'"),
        (lambda s: s.sliding(rows=3).aggregate(time="count"), "cannot be called 'time'"),
        (lambda s: s.key_by("key").sliding(rows=3).aggregate(key="count"), "called key"),
        (lambda s: s.broadcast().sliding(rows=3), "leave broadcast"),
        (
            lambda s: s.key_by("key").tumbling("1s").aggregate(x=("mean", "price")),
            "sliding windows",
        ),
    ],
)
def test_what_cannot_be_a_sliding_window_is_refused_in_the_line_that_says_it(build, said):
    with pytest.raises((GraphError, UsageError), match=said):
        flow_of(build)


def joined(flow, match="key", **given):
    numbers = sl.generated(lambda n: {"key": n % 5, "price": n * 7 % 31}, rate=50)
    left, right = (flow.source(numbers, name=name) for name in ("left", "right"))
    if match == "key":
        left, right = left.key_by("key"), right.key_by("key")
    windows = left.sliding(rows=3), right.sliding(rows=4)
    return windows[0].join(windows[1], match=match, **given)


def cheaper(left, right):
    return left["price"] < right["price"]


@pytest.mark.parametrize("match", ["key", "scan"])
def test_a_join_of_windows_by_rows_pairs_what_matches_and_survives_a_rehearsal(match):
    flow = sl.Dataflow("f")
    joined(flow, match, on=cheaper).sink("out")
    flow = flow.bind(2, DURATION_MS)
    batch = Interleaver(flow, 2, 1, {}).run().output["out"]
    assert batch.length > 100
    assert (batch["price"] < batch["price_right"]).all()
    assert ("key_right" in batch.columns) == (match == "scan"), "a shared key stands there once"
    assert rehearse(deploy(flow, 2), 0)[1] is None


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda s: s.sliding(rows=3).join(s.sliding(rows=3)), "say so with match='scan'"),
        (lambda s: s.sliding(rows=3).join(s.sliding(rows=3), match="scan"), "on= says which rows"),
        (lambda s: s.sliding(rows=3).join(s.sliding(rows=3), match="sort"), "'key' or by 'scan'"),
        (
            lambda s: s.sliding(rows=3).join(s.sliding("2s", every="1s")),
            "cannot be joined: cut both",
        ),
        (lambda s: s.sliding(rows=3).join(s), "is cut with sliding"),
        (
            lambda s: s.key_by("key").sliding(rows=0).join(s.key_by("key").sliding(rows=0)),
            "nothing could be joined",
        ),
        (
            lambda s: (
                s.map(lambda b: b.rename({"key": "window"}))
                .key_by("window")
                .sliding("2s", every="1s")
                .join(s.key_by("key").sliding("2s", every="1s"))
            ),
            "a key cannot be called window",
        ),
        (lambda s: s.sliding(rows=3).join(s.sliding(rows=3), match="scan", on=7), "a function of"),
        (lambda s: s.key_by("key").sliding(rows=3).join(s.sliding(rows=3)), "on both sides"),
    ],
)
def test_what_cannot_be_joined_is_refused_in_the_line_that_says_it(build, said):
    with pytest.raises((GraphError, UsageError), match=said):
        flow_of(build)


def test_the_fingerprint_tells_shapes_apart():
    def prints(build):
        return deploy(flow_of(build), 2).fingerprint

    shapes = [
        by_time,
        by_rows,
        lambda s: s.sliding("1s", every="500ms").aggregate(n="count", top=("max", "price")),
        lambda s: s.sliding(rows=11).aggregate(n="count", top=("max", "price")),
        lambda s: s.sliding(rows=10).aggregate(n="count", top=("min", "price")),
    ]
    assert len({prints(build) for build in shapes}) == len(shapes)


def test_a_mean_of_whole_numbers_has_a_fraction():
    batch = output(lambda s: s.sliding(rows=2).aggregate(mean=("mean", "price"), n="count"))
    assert batch["mean"].dtype == np.float64
    assert (batch["mean"] * batch["n"]).tolist() == np.round(batch["mean"] * batch["n"]).tolist()
