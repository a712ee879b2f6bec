"""The workloads as queries of Spark Structured Streaming, as its users would write them.

A query takes the streams of its workload by name and gives one stream of results with the columns that the
workload's judge expects. Output mode is always append: a row that came out stays.

- **SST** counts and collects ids per resource and window. A window comes out when the watermark has
  passed its end. `collect_list` keeps what it is given: an event that were processed twice would be seen
  twice.
- **MST** does so with two streams: each has a watermark of its own, then they are united, and the two
  kinds of events are counted apart. Spark takes the lower of two watermarks, so neither stream can make
  the other late. The other way, an aggregate of each stream and a join of the two, needs a full outer
  join for resources that have only one kind, and a chain of three operators with state; it gives the same
  rows.
- **q1** is a map; **q3** an inner join over all time, whose state nothing can free; **q8** joins equal
  windows, which the watermark frees; **q12** emits a row for every record, which no SQL aggregate does:
  it keeps its counts in `applyInPandasWithState`.

The watermark stands back by `QueryShape.delay_ms`, which covers the disorder of the input. What came later
than that, Spark would drop: it has no late output, but it counts what it drops, and that is reported.
"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeAlias

import pandas as pd  # type: ignore[import-untyped]  # it has no types of its own
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from snapline.systems.structured_streaming.shapes import QueryShape

Streams: TypeAlias = Mapping[str, DataFrame]


Query: TypeAlias = Callable[[Streams, QueryShape], DataFrame]


def _timed(stream: DataFrame, shape: QueryShape) -> DataFrame:
    """The stream with `at`, its event time as Spark knows it, and a watermark."""
    timed = stream.withColumn("at", f.timestamp_millis("time"))
    return timed.withWatermark("at", f"{shape.delay_ms} milliseconds")


def _window(shape: QueryShape) -> Column:
    return f.window("at", f"{shape.window_ms} milliseconds")


def _start() -> Column:
    return f.unix_millis("span.start").alias("window")


def sst(streams: Streams, shape: QueryShape) -> DataFrame:
    """Events per resource and window, with their ids."""
    (events,) = streams.values()
    grouped = _timed(events, shape).groupBy(_window(shape).alias("span"), "resource")
    counted = grouped.agg(f.count("*").alias("count"), f.collect_list("id").alias("ids"))
    return counted.select("resource", _start(), "count", "ids")


def mst(streams: Streams, shape: QueryShape) -> DataFrame:
    """GETs and POSTs per resource and window, with their ids."""
    gets, posts = (
        _timed(streams[name], shape).select("id", "at", "resource", f.lit(name).alias("kind"))
        for name in ("gets", "posts")
    )
    get_id, post_id = (f.when(f.col("kind") == name, f.col("id")) for name in ("gets", "posts"))
    grouped = gets.union(posts).groupBy(_window(shape).alias("span"), "resource")
    counted = grouped.agg(
        f.count(get_id).alias("gets"),
        f.count(post_id).alias("posts"),
        f.collect_list(get_id).alias("get_ids"),  # it leaves out nulls
        f.collect_list(post_id).alias("post_ids"),
    )
    return counted.select("resource", _start(), "gets", "posts", "get_ids", "post_ids")


def q1(streams: Streams, shape: QueryShape) -> DataFrame:
    """Bids with their price in euros."""
    bids, rate = streams["bids"], shape.euros_per_1000_dollars
    price = f.expr(f"price * {rate} div 1000").alias("price")
    return bids.select("id", "auction", "bidder", price, "time")


def q3(streams: Streams, shape: QueryShape) -> DataFrame:
    """Auctions of a category with their sellers, if these live in one of the states."""
    people = streams["persons"].where(f.col("state").isin(list(shape.states)))
    lots = streams["auctions"].where(f.col("category") == shape.category)
    sold = lots.select("auction", "seller").join(people, f.col("seller") == f.col("person"))
    return sold.select("auction", "person", "name", "city", "state")


def q8(streams: Streams, shape: QueryShape) -> DataFrame:
    """Auctions with their sellers, if both came in the same window."""
    people = _timed(streams["persons"], shape).select("person", "name", _window(shape).alias("in"))
    lots = _timed(streams["auctions"], shape)
    opened = lots.select("auction", "seller", "reserve", _window(shape).alias("span"))
    same = (f.col("seller") == f.col("person")) & (f.col("span") == f.col("in"))
    return opened.join(people, same).select("auction", "person", "name", "reserve", _start())


def q12(streams: Streams, shape: QueryShape) -> DataFrame:
    """For every bid, which one of its bidder's in its window it is."""
    time, length = f.col("time"), f.lit(shape.window_ms)
    bids = streams["bids"].select("bidder", (time - time % length).alias("window"), "time")
    return bids.groupBy("bidder", "window").applyInPandasWithState(
        _count_on,
        "bidder bigint, window bigint, count bigint, time bigint",
        "count bigint",
        "append",
        GroupStateTimeout.NoTimeout,
    )


def _count_on(
    key: tuple[int, int], pieces: Iterator[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    """Number the bids of one bidder and window, from where the last batch left off."""
    counted: int = state.get[0] if state.exists else 0
    for piece in pieces:
        numbers = range(counted + 1, counted + len(piece) + 1)
        bidder, window = key
        yield pd.DataFrame(
            {"bidder": bidder, "window": window, "count": numbers, "time": piece["time"].to_numpy()}
        )
        counted += len(piece)
    state.update((counted,))


QUERIES: Mapping[str, Query] = MappingProxyType(
    {"sst": sst, "mst": mst, "q1": q1, "q3": q3, "q8": q8, "q12": q12}
)
"""What Structured Streaming runs here, by the name of the workload."""
