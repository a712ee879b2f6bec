"""The second pass on Spark: finds the causes of the suspects, by the rules of `validate.causes`.

Everything that is known about an id is brought together, a row for each: where it is claimed, that it is
late, where it is expected, and where it is an event of the input at all. These rows are shuffled and sorted
once, by id; windows over that order tell of every claim whether it is right, made twice, or made before.
Added up per output, late row and place they give the causes and their witnesses.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Final, TypeAlias

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from snapline.validate.causes import Cause
from snapline.validate.on_spark.split import parts, split_of, with_split
from snapline.validate.on_spark.suspects import BROADCAST_ROWS_MAX, Suspects, honest
from snapline.validate.on_spark.tables import CLAIMED, EXPECTED, LATE, ROW, THERE, LineageFrames

SUMS: Final = (
    *("lost", "repeated", "reliable", "counted"),
    *("late_rows", "late_events", "expected", "met"),
)
"""The counts that are added up over the windows that are judged. `reliable` and `counted` concern the
events that suspect outputs claim, or that are late; `met` are those that suspects claim and whose own place
is not suspect."""

_TRUE: Final = ("true_resource", "true_window", "true_watermark")

Rule: TypeAlias = tuple[Cause, Column, Column, Column]
"""A rule: its cause, the condition under which it holds, the id that shows it, the witness's `other`."""


def causes_of(tables: LineageFrames, suspects: Suspects, late_rows: int) -> DataFrame:
    """One row for each cause (null stands for no cause) with its count, its witness, and the sums."""
    told = _told(tables, _about_ids(tables, suspects, late_rows))
    judged = _with_causes(tables, with_split(tables, _added_up(tables, told)))
    return (
        judged.unionByName(_without_ids(tables, suspects))
        .groupBy(*tables.by, "cause")
        .agg(
            F.count("*").alias("count"),
            F.min("witness").alias("witness"),
            *(F.sum(name).alias(name) for name in SUMS),
        )
    )


def _without_ids(tables: LineageFrames, suspects: Suspects) -> DataFrame:
    """The findings for outputs that claim no ids; the rows about ids cannot show these."""
    silent = (F.size("get_ids") + F.size("post_ids") == 0) & tables.judged(F.col("window"))
    nobody = F.lit(None).cast(tables.id_type)
    return suspects.frame.where(F.col(ROW).isNotNull() & silent).select(
        *tables.by,
        F.lit(Cause.INVENTED.value).alias("cause"),
        _witness(F.col("window"), F.col("resource"), F.col("position"), nobody, _none()),
        *(F.lit(0).cast("bigint").alias(name) for name in SUMS),
    )


def _none() -> Column:
    return F.lit(None).cast("bigint")


# Rows about ids.


def _about_ids(tables: LineageFrames, suspects: Suspects, late_rows: int) -> DataFrame:
    frame = suspects.frame
    place = [F.col(name) for name in tables.place]
    own = [F.col("position"), F.col(ROW), honest().alias("honest")]
    claims = frame.where(F.col(ROW).isNotNull()).select(*place, *own, *_ids("get_ids", "post_ids"))
    first = F.col("first").alias("position")
    wants = frame.select(*place, first, *_ids("want_get_ids", "want_post_ids"))
    parts = [_row(tables, _sided(claims), CLAIMED)]
    if tables.late is not None and late_rows:
        parts.append(_row(tables, tables.late, LATE))
    events = _row(tables, tables.inputs, THERE)
    if suspects.claims + late_rows <= BROADCAST_ROWS_MAX:  # otherwise take the rows of all events
        ids = _union([part.select(*tables.by, "id") for part in parts])
        events = events.join(F.broadcast(ids), [*tables.by, "id"], "left_semi")
    return _union([*parts, _row(tables, _sided(wants), EXPECTED), events])


def _ids(gets: str, posts: str) -> tuple[Column, Column]:
    """One row for each id of both sides, the GETs first; a list that is null gives no rows."""
    return F.size(gets).alias("gets"), F.posexplode(F.concat(gets, posts)).alias("place", "id")


def _sided(exploded: DataFrame) -> DataFrame:
    return exploded.withColumn("post", F.col("place") >= F.col("gets"))


def _row(tables: LineageFrames, frame: DataFrame, kind: int) -> DataFrame:
    """The columns that all rows about ids share; null where a column has no meaning."""
    resource = tables.inputs.schema["resource"].dataType.simpleString()
    types = {"resource": resource, "window": "bigint", "position": "bigint", ROW: "bigint"}
    types |= {"watermark": "bigint", "post": "boolean", "honest": "boolean"}
    columns = [
        (F.col(name) if name in frame.columns else F.lit(None)).cast(type).alias(name)
        for name, type in types.items()
    ]
    return frame.select(*tables.by, "id", F.lit(kind).alias("kind"), *columns)


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.union, frames)


# Conclusions from all rows about an id.


def _told(tables: LineageFrames, rows: DataFrame) -> DataFrame:
    """Add to every row what all rows about its id say together.

    All windows go along one order, so that Spark sorts once.
    """
    names = [*tables.by, "id"]
    together = Window.partitionBy(*names)
    is_event, kind = F.col("kind") >= EXPECTED, F.col("kind")
    rows = rows.select(
        "*",
        *(
            F.max(F.when(is_event, F.col(name))).over(together).alias(f"true_{name}")
            for name in ("resource", "window", "post", "watermark")
        ),
        F.max(kind == EXPECTED).over(together).alias("suspect"),
        F.sum((kind == CLAIMED).cast("int")).over(together).alias("claims"),
        F.sum((kind == LATE).cast("int")).over(together).alias("lates"),
    )
    rows = rows.select(
        "*",
        F.col("true_window").isNotNull().alias("known"),
        F.coalesce(F.col("true_post") == F.col("post"), F.lit(False)).alias("sided"),
    )
    same = [F.col(f"true_{name}") == F.col(name) for name in ("resource", "window")]
    claimed = kind == CLAIMED
    right = claimed & F.col("sided") & F.coalesce(same[0] & same[1], F.lit(False))
    rows = rows.select("*", right.alias("right"))
    sound = (F.col("right") & F.col("honest")).cast("int")
    where = F.when(F.col("right"), F.struct("position", ROW))
    rows = rows.select(
        "*",
        F.sum(sound).over(together).alias("sound"),
        F.min(where).over(together).alias("first_right"),
        tables.judged(F.col("true_window")).alias("judged"),
        F.coalesce(_closing(tables) > F.col("true_watermark"), F.lit(False)).alias("timely"),
    )
    return _in_order(tables, rows)


def _closing(tables: LineageFrames) -> Column:
    """When the window of an event is closed."""
    return F.col("true_window") + (tables.size_ms + tables.lateness_ms)


def _in_order(tables: LineageFrames, rows: DataFrame) -> DataFrame:
    """Add what follows from the order of the rows about an id; in one output, right claims come first."""
    names, order = [*tables.by, "id"], [F.col("position"), F.col(ROW), F.col("right").desc()]
    alike = Window.partitionBy(*names, "kind", "resource", "window").orderBy(*order)
    in_order = Window.partitionBy(*names).orderBy("kind", "resource", "window", *order)
    rows = rows.select(
        "*",
        F.first(ROW).over(alike).alias("first_row"),
        F.first("position").over(alike).alias("first_position"),
        F.lag(ROW).over(alike).alias("row_before"),
        F.lead("position").over(alike).alias("next_position"),
        F.col("first_right.position").alias("right_position"),
    )
    return rows.select("*", (F.row_number().over(in_order) == 1).alias("leads"))


def _added_up(tables: LineageFrames, told: DataFrame) -> DataFrame:
    """One row for each output, late row and suspect place."""
    id, right, kind = F.col("id"), F.col("right"), F.col("kind")
    twice = F.col("row_before") == F.col(ROW)
    again = F.col("first_row") != F.col(ROW)
    sides = [
        column
        for side, name in ((F.col("post"), "post"), (~F.col("post"), "get"))
        for column in (
            F.count_if(side).alias(f"{name}_claims"),
            F.count_if(side & ~right).alias(f"{name}_strays"),
            F.count_if(side & ~F.col("sided")).alias(f"{name}_unsided"),
            *(
                bound(F.when(side, F.col(f"true_{what}"))).alias(f"{name}_{end}_{what}")
                for what in ("resource", "window")
                for bound, end in ((F.min, "low"), (F.max, "high"))
            ),
        )
    ]
    output = [*tables.by, "kind", "resource", "window", "position", ROW, "honest"]
    return (
        told.where(kind <= EXPECTED)
        .groupBy(*output)
        .agg(
            F.min(id).alias("id"),
            F.min(F.when(~F.col("known"), id)).alias("unknown"),
            F.min(F.when(~right, F.struct("id", "true_window"))).alias("stray"),
            F.min(F.when(twice, id)).alias("twice"),
            F.min(F.when(again, F.struct("id", "first_position"))).alias("again"),
            F.min(F.when(F.col("claims") == 0, id)).alias("lost_id"),
            *parts(),
            *sides,
            *(F.max(name).alias(name) for name in (*_TRUE, "right_position", "next_position")),
            F.max("known").alias("known"),
            F.max("timely").alias("timely"),
            F.max(F.col("row_before").isNull()).alias("is_first"),
            *_sums(),
        )
    )


def _sums() -> list[Column]:
    """What the rows of an output, late row or place add to the sums of a judgement."""
    kind, known = F.col("kind"), F.col("known")
    heads = F.col("leads") & known & (kind <= LATE)  # one row for each event that occurs
    elsewhere = ~F.col("suspect") & (
        F.col("lates") == 0
    )  # the event occurs in an output that is not suspect as well
    total = F.col("claims") + F.col("lates") + elsewhere.cast("int")
    once = (total == 1) & (F.col("sound") + F.col("lates") == 1)
    counted = {
        "lost": (kind == EXPECTED) & (F.col("claims") == 0),
        "repeated": heads & (total > 1),
        "reliable": heads & once & ~(F.col("timely") & (F.col("lates") > 0)),
        "counted": heads & F.col("right_position").isNotNull(),
        "late_rows": kind == LATE,
        "late_events": (kind == LATE) & known & F.col("row_before").isNull(),
        "expected": kind == EXPECTED,
        "met": heads & elsewhere,
    }
    return [F.count_if(counted[name] & F.col("judged")).alias(name) for name in SUMS]


# The rules.


def _with_causes(tables: LineageFrames, added_up: DataFrame) -> DataFrame:
    last = tables.outputs.groupBy(*tables.by).agg(F.max("window").alias("last"))
    if tables.by:
        added_up = added_up.join(F.broadcast(last), list(tables.by), "left")
    else:
        added_up = added_up.crossJoin(F.broadcast(last))
    late, placed = F.col("kind") == LATE, F.col("kind") != EXPECTED
    window = F.when(late, F.col("true_window")).otherwise(F.col("window"))
    own = F.when(placed, F.col("position"))
    rules = [*_rules_of_outputs(), *_rules_of_late(), *_rules_of_places()]
    first = F.coalesce(*(F.when(met, _found(cause, own, *rest)) for cause, met, *rest in rules))
    # A place may be split and have lost events as well, so a split is a finding of its own.
    found = F.when(F.col("is_split"), F.array(first, split_of(_found))).otherwise(F.array(first))
    found = F.transform(found, lambda each: F.when(tables.judged(window), each))
    witness = _witness(
        window,
        F.when(late, F.col("true_resource")).otherwise(F.col("resource")),
        *(F.col(f"found.{name}") for name in ("position", "id", "other")),
    )
    each = added_up.select("*", F.posexplode(found).alias("number", "found"))
    sums = [F.when(F.col("number") == 0, F.col(name)).otherwise(0).alias(name) for name in SUMS]
    return each.select(*tables.by, F.col("found.cause").alias("cause"), witness, *sums)


def _found(cause: Cause, position: Column, id: Column, other: Column) -> Column:
    """A finding: its cause, where it stands, and what shows it."""
    named = F.lit(cause.value).alias("cause")
    return F.struct(named, position.alias("position"), id.alias("id"), other.alias("other"))


def _witness(
    window: Column, resource: Column, position: Column, id: Column, other: Column
) -> Column:
    """The value by which the lowest example is found; null comes last."""
    return F.struct(
        window.isNull().alias("no_window"),
        window.alias("window"),
        resource.alias("resource"),
        position.alias("position"),
        id.isNull().alias("no_id"),
        id.alias("id"),
        other.alias("other"),
    ).alias("witness")


def _rules_of_outputs() -> list[Rule]:
    claimed, stray = F.col("kind") == CLAIMED, F.col("stray")
    strays = F.col("get_strays") + F.col("post_strays")
    rules: list[Rule] = [
        (Cause.INVENTED, F.col("unknown").isNotNull(), F.col("unknown"), _none()),
        (Cause.WRONG_WINDOW, _wrong_window(), stray["id"], stray["true_window"]),
        (
            Cause.WRONG_PAIR,
            _elsewhere("get", "post") | _elsewhere("post", "get"),
            stray["id"],
            stray["true_window"],
        ),
        (Cause.MISPLACED, strays > 0, stray["id"], stray["true_window"]),
        (Cause.TWICE_INSIDE, F.col("twice").isNotNull(), F.col("twice"), _none()),
        (Cause.WRONG_VALUE, ~F.col("honest"), F.col("id"), _none()),
        (
            Cause.DUPLICATE,
            F.col("again").isNotNull(),
            F.col("again")["id"],
            F.col("again")["first_position"],
        ),
    ]
    return [(cause, claimed & met, id, other) for cause, met, id, other in rules]


def _wrong_window() -> Column:
    """All ids stand on their side and have the output's resource, and one window: another one."""
    sides = ("get", "post")
    unsided = F.col("get_unsided") + F.col("post_unsided")
    ends = [F.col(f"{side}_{end}_resource") for side in sides for end in ("low", "high")]
    resources = [F.coalesce(end == F.col("resource"), F.lit(True)) for end in ends]
    low = F.least(*(F.col(f"{side}_low_window") for side in sides))
    high = F.greatest(*(F.col(f"{side}_high_window") for side in sides))
    same_resource = reduce(Column.__and__, resources)
    return (unsided == 0) & same_resource & (low == high) & (low != F.col("window"))


def _elsewhere(side: str, other: str) -> Column:
    """Whether all ids of one side are right, and those of the other all belong to one other place."""
    lows = [F.col(f"{other}_low_{what}") for what in ("resource", "window")]
    highs = [F.col(f"{other}_high_{what}") for what in ("resource", "window")]
    one_place = (lows[0] == highs[0]) & (lows[1] == highs[1]) & (F.col(f"{other}_unsided") == 0)
    right = (F.col(f"{side}_claims") > 0) & (F.col(f"{side}_strays") == 0)
    return right & one_place & (F.col(f"{other}_strays") > 0)


def _rules_of_late() -> list[Rule]:
    late, id = F.col("kind") == LATE, F.col("id")
    once = late & F.col("is_first")  # one row for each event
    windowed, second = F.col("right_position"), F.col("next_position")
    return [
        (Cause.INVENTED, late & ~F.col("known"), id, _none()),
        (Cause.LATE_AND_WINDOWED, once & windowed.isNotNull(), id, windowed),
        (Cause.LATE_TWICE, once & second.isNotNull(), id, second),
        (Cause.NOT_LATE, once & F.col("timely"), id, F.col("true_watermark")),
    ]


def _rules_of_places() -> list[Rule]:
    lost = (F.col("kind") == EXPECTED) & (F.col("lost") > 0)
    first, id = F.col("position"), F.col("lost_id")
    ended = F.col("last").isNull() | (F.col("window") > F.col("last"))
    return [
        (Cause.INCOMPLETE, lost & first.isNotNull(), id, first),
        (Cause.TRUNCATED, lost & ended, id, _none()),
        (Cause.MISSING, lost, id, _none()),
    ]
