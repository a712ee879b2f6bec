"""The pool of Spark's scheduler that slots run in: a lost slot gets the next core that becomes free.

First come, first served is Spark's usual order (FIFO): beside a job of many tasks a lost slot waits until
the last of these tasks has started. Under the fair scheduler (`spark.scheduler.mode=FAIR`) jobs are in
pools, and a pool that runs fewer tasks than its minimum share comes first. The share of this one is larger
than any number of slots, so slots always come first, whatever shares the user's own pools have. Nobody
starves of that: slots are counted against cores before a run.

Spark knows minimum shares from a file (`spark.scheduler.allocation.file`) that it reads when a session is
made. This pool is made without one, so there is one in a session of the user's, too. If the user's file has
a pool of this name, that one is used as it is.
"""

from typing import Any, Final

from pyspark import SparkContext

POOL: Final = "snapline"
FAIR: Final = "FAIR"
MODE: Final = "spark.scheduler.mode"
_MIN_SHARE: Final = 1 << 20


def ensure_pool(context: SparkContext) -> bool:
    """Make the pool of slots, unless it is there. Returns whether Spark's scheduler has pools at all."""
    spark: Any = context._jsc.sc()
    if spark.getSchedulingMode().toString() != FAIR:
        return False
    if spark.getPoolForName(POOL).isEmpty():
        add_pool(context, POOL, _MIN_SHARE)
    return True


def add_pool(context: SparkContext, name: str, min_share: int) -> None:
    """Add a pool to the scheduler of a session, as Spark does for those of its file."""
    java: Any = context._jvm
    spark: Any = context._jsc.sc()
    scheduler = java.org.apache.spark.scheduler
    pool = scheduler.Pool(name, scheduler.SchedulingMode.FIFO(), min_share, 1)
    spark.taskScheduler().rootPool().addSchedulable(pool)
