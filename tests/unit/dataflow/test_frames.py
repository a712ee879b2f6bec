"""DataFrames as sources, as far as a dataflow knows them before it is run: no Spark is needed for it."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from snapline.batch import Batch
from snapline.dataflow.feeds.frames import FrameFeed, StreamFeed
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.meanings import sink_meanings
from snapline.errors import GraphError, UsageError
from snapline.rundir.stored_input import stream
from snapline.workload.common.own import records

MONEY = "decimal(10,2)"


@dataclass
class Frame:
    """What a dataflow asks of a DataFrame."""

    columns: list[tuple[str, str]]
    isStreaming: bool = False
    mapInArrow: object = None
    schema: SimpleNamespace = field(init=False)

    def __post_init__(self):
        fields = [
            SimpleNamespace(
                name=name, dataType=SimpleNamespace(simpleString=lambda said=said: said)
            )
            for name, said in self.columns
        ]
        self.schema = SimpleNamespace(fields=fields)


def frame(**columns: str) -> Frame:
    return Frame(list(columns.items()))


def source_of(given, **reading) -> FrameFeed:
    flow = Dataflow("frames")
    flow.source(given, **reading)
    (node,) = flow.graph.nodes.values()
    assert isinstance(node.ingress, FrameFeed)
    return node.ingress


def test_every_type_that_has_a_kind_is_taken():
    feed = source_of(
        frame(
            tiny="tinyint", small="smallint", normal="int", big="bigint", real="float", exact="double",
            is_it="boolean", text="string", raw="binary", day="date", at="timestamp",
            local="timestamp_ntz", price=MONEY, tags="array<int>",
        )
    )  # fmt: skip
    assert feed.schema == {
        "tiny": "int8", "small": "int16", "normal": "int32", "big": "int64", "real": "float32",
        "exact": "float64", "is_it": "bool", "text": "str", "raw": "bytes", "day": "int64", "at": "int64",
        "local": "int64", "price": "int64", "tags": "list",
    }  # fmt: skip
    assert feed.meanings == {
        "day": "date", "at": "timestamp", "local": "timestamp_ntz", "price": MONEY
    }  # fmt: skip
    assert (feed.time, feed.pace) == (None, "max")


@pytest.mark.parametrize(
    ("spelled", "advice"),
    [
        ("struct<x:int>", r"the column 'a' is a struct<x:int>, and columns are flat: .*'a\.\*'"),
        ("map<string,int>", r"is a map<string,int>, and columns are flat: take its values"),
        (
            "array<string>",
            r"is an array<string>, and only arrays of integers are taken: .*F\.explode",
        ),
        ("decimal(20,3)", r"at most 18 digits here: cast it, .*\.cast\('decimal\(18,3\)'\)"),
        ("interval day", r"is an interval day, for which there is no kind of column: cast it"),
        ("void", r"is a void, for which there is no kind"),
    ],
)
def test_a_type_without_a_kind_is_refused_with_what_to_do(spelled, advice):
    with pytest.raises(GraphError, match=advice):
        source_of(frame(ok="int", a=spelled))


def test_the_time_is_the_column_of_that_name_or_the_one_that_is_named():
    usual = source_of(frame(time="timestamp", key="int"))
    assert (usual.time, usual.schema["time"], usual.pace) == ("time", "int64", None)
    assert usual.meanings == {"time": "timestamp_ms"}
    named = source_of(frame(at="timestamp", key="int"), time="at")
    assert named.schema == {"at": "int64", "key": "int32", "time": "int64"}
    assert named.meanings == {"at": "timestamp", "time": "timestamp_ms"}
    plain = source_of(frame(ms="bigint"), time="ms", rate=10, disorder="2s")
    assert (plain.meanings, plain.pace, plain.disorder_ms) == ({}, 10, 2_000)


@pytest.mark.parametrize(
    ("columns", "reading", "message"),
    [
        ({"key": "int"}, {"time": "at"}, r"there is no column 'at' for time=: there is key"),
        ({"key": "int"}, {"time": 3}, r"there is no column 3 for time="),
        (
            {"time": "string"},
            {},
            r"'time' is a string, and the time of a record is a timestamp or a bigint",
        ),
        ({"at": "date"}, {"time": "at"}, r"'at' is a date, and the time of a record"),
        (
            {"time": "timestamp", "at": "timestamp"},
            {"time": "at"},
            r"time='at' becomes the column 'time', and there is one already: rename that",
        ),
        ({"key": "int"}, {"disorder": "1s"}, r"disorder= is how far .* say time=, too"),
        ({"time": "bigint"}, {"disorder": "soon"}, r"disorder is written as"),
        ({"key": "int"}, {"rate": 0}, r"rate is a whole number of records per second"),
        ({"key": "int"}, {"rate": "fast"}, r"rate is a whole number of records per second"),
        ({}, {}, r"the DataFrame has no columns"),
        ({"": "int"}, {}, r"a name has 1 to 255 bytes"),
        ({"x" * 256: "int"}, {}, r"a name has 1 to 255 bytes"),
    ],
)
def test_what_cannot_be_is_said_when_the_dataflow_is_built(columns, reading, message):
    with pytest.raises(UsageError, match=message):
        source_of(frame(**columns), **reading)


def test_a_frame_that_streams_or_has_a_name_twice_is_refused():
    with pytest.raises(GraphError, match=r"a streaming .* say flow\.source\(sl\.stream\(df\)\)"):
        source_of(Frame([("a", "int")], isStreaming=True))
    with pytest.raises(GraphError, match="two columns are called 'a'"):
        source_of(Frame([("a", "int"), ("b", "int"), ("a", "int")]))


def test_what_is_for_frames_is_refused_for_other_inputs():
    with pytest.raises(GraphError, match="time= is for DataFrames"):
        Dataflow("records").source(records([{"a": 1}], rate=1), time="a")
    pandas = type("DataFrame", (), {"__module__": "pandas"})()
    with pytest.raises(GraphError, match=r"use spark\.createDataFrame\(df\)"):
        Dataflow("pandas").source(pandas)


def test_a_column_that_does_not_exist_is_named_when_the_dataflow_is_built():
    stream = Dataflow("frames").source(frame(key="int", at="timestamp"), name="bids", time="at")
    with pytest.raises(
        GraphError, match="'bids' has no column bidder to key by: it has key, at, time"
    ):
        stream.key_by("bidder")
    with pytest.raises(GraphError, match="there is no column 'price' for the aggregate 'top'"):
        stream.key_by("key").tumbling("1s").aggregate(top=("max", "price"))


def test_a_frame_that_was_not_staged_cannot_be_read():
    unstaged = source_of(frame(key="int")).bind(2, 1_000)
    assert (unstaged.partitions, unstaged.schema) == (2, {"key": "int32"})
    with pytest.raises(UsageError, match=r"use sl\.run\(flow, spark\)"):
        unstaged.read(0, 0, 10)


# What columns mean behind operators.

BIDS = {"time": "timestamp", "key": "date", "price": MONEY, "n": "bigint"}


def meant(build) -> dict[str, dict[str, str]]:
    flow = Dataflow("frames")
    build(flow.source(frame(**BIDS), name="bids"), flow)
    return {sink: dict(found) for sink, found in sink_meanings(flow).items()}


ALL = {"time": "timestamp_ms", "key": "date", "price": MONEY}


def test_a_column_that_is_passed_on_keeps_its_meaning():
    def build(bids, flow):
        bids.sink("all")
        bids.filter(lambda batch: batch["n"] > 0).sink("some")
        bids.key_by("key").count().sink("numbered")
        bids.key_by("price").fold({"most": 0}, lambda state, batch: state).sink("folded")

    assert meant(build) == {
        "all": ALL,
        "some": ALL,
        "numbered": {"key": "date", "time": "timestamp_ms"},
        "folded": {"price": MONEY, "time": "timestamp_ms"},
    }


def test_results_of_windows_mean_what_their_columns_do():
    def build(bids, flow):
        windows = bids.key_by("key").tumbling("1s")
        aggregated = windows.aggregate(
            least=("min", "price"), whole=("sum", "price"), n="count", sum_n=("sum", "n"),
            all=("collect", "price"), last=("max", "key"), sum_of_days=("sum", "key"),
        )  # fmt: skip
        aggregated.sink("windows")
        aggregated.output("late").sink("late")
        windows.running_count().sink("running")

    stamps = {"key": "date", "window": "timestamp_ms", "time": "timestamp_ms"}
    assert meant(build) == {
        "windows": {**stamps, "least": MONEY, "whole": "decimal(20,2)", "last": "date"},
        "late": ALL,
        "running": stamps,
    }


def test_pairs_have_the_meanings_of_both_sides():
    def build(bids, flow):
        sales = flow.source(frame(time="bigint", day="date", price="decimal(4,1)"), name="sales")
        left, right = bids.key_by("key"), sales.key_by("day")
        left.join(right).sink("pairs")
        left.window_join(right, "1s").sink("window pairs")
        counts = {"left": {"bids": "count"}, "right": {"sales": ("collect", "price")}}
        left.window_cogroup(right, "1s", **counts).sink("groups")

    pairs = {**ALL, "day": "date", "price_right": "decimal(4,1)"}
    assert meant(build) == {
        "pairs": pairs,
        "window pairs": {**pairs, "window": "timestamp_ms"},
        "groups": {"key": "date", "window": "timestamp_ms", "time": "timestamp_ms"},
    }


def test_behind_a_function_nothing_is_known():
    def build(bids, flow):
        bids.map(lambda batch: batch).filter(lambda batch: batch["n"] > 0).sink("mapped")
        bids.map_records(dict).key_by("key").count().sink("records")

    assert meant(build) == {}


def test_numbers_that_mean_different_things_are_not_mixed():
    def united(bids, flow):
        bids.union(flow.source(frame(**{**BIDS, "price": "decimal(10,3)"}))).sink("all")

    with pytest.raises(
        GraphError, match=r"'price' is a decimal\(10,2\) in one stream and a decimal\(10,3\)"
    ):
        meant(united)

    def joined(bids, flow):
        bids.key_by("key").join(flow.source(frame(key="timestamp")).key_by("key")).sink("all")

    with pytest.raises(GraphError, match=r"'key' is a date and 'key' a timestamp: to be joined"):
        meant(joined)

    def grouped(bids, flow):
        other = flow.source(frame(time="bigint", m="bigint"), name="other").key_by("m")
        bids.key_by("price").window_cogroup(other, "1s", left={"n": "count"}, right={}).sink("all")

    with pytest.raises(GraphError, match=r"'price' is a decimal\(10,2\) and 'm' a plain value"):
        meant(grouped)


def test_a_window_over_microseconds_is_refused():
    flow = Dataflow("frames")
    stream = flow.source(frame(at="timestamp", key="int"))
    stream.key_by("key").tumbling("1s", time="at").count().sink("counts")
    with pytest.raises(
        GraphError, match=r"'at' is a timestamp: name it where .*source\(df, time='at'\)"
    ):
        sink_meanings(flow)


def test_an_operator_of_ones_own_says_nothing_unless_it_does():
    from snapline.dataflow.operators.operator import Operator

    class Twice(Operator):
        def process(self, port, batch):
            return (("out", Batch({"key": np.repeat(batch["key"], 2)})),)

    class Says(Twice):
        def known_columns(self, output, given):
            return {"key": given["in"]["key"]}

    def build(bids, flow):
        bids.apply(Twice, name="twice").sink("silent")
        bids.apply(Says, name="says").sink("told")

    assert meant(build) == {"told": {"key": "date"}}


def test_a_stream_has_the_columns_of_its_frame_and_waits_for_nobody():
    streaming = Frame([("at", "timestamp"), ("price", MONEY)], isStreaming=True)
    feed = source_of(stream(streaming, time="at", disorder="2s", idle="1s"))
    assert isinstance(feed, StreamFeed)
    assert feed.schema == {"at": "int64", "price": "int64", "time": "int64"}
    assert (feed.disorder_ms, feed.idle_ms, feed.available_now) == (2_000, 1_000, False)


@pytest.mark.parametrize(
    ("columns", "reading", "message"),
    [
        ({"a": "int"}, {"time": "when"}, "there is no column 'when' for time="),
        ({"a": "int"}, {"disorder": "1s"}, "say time=, too"),
        ({"time": "string"}, {}, "the column 'time' is a string"),
        ({"a": "map<int,int>"}, {}, "map<int,int>"),
    ],
)
def test_what_cannot_be_a_stream_is_said_when_it_is_made(columns, reading, message):
    with pytest.raises(GraphError, match=message):
        stream(Frame(list(columns.items()), isStreaming=True), **reading)


def test_a_batch_frame_is_no_stream_and_a_stream_says_itself_how_it_is_read():
    with pytest.raises(GraphError, match=r"no streaming one: say flow\.source\(df\)"):
        stream(frame(a="int"))
    streaming = stream(Frame([("a", "int")], isStreaming=True))
    with pytest.raises(GraphError, match="rate= is for DataFrames"):
        source_of(streaming, rate=5)
