"""Streaming queries of Spark over a run, on a machine of any speed."""

import time
from collections.abc import Callable

from pyspark.sql.streaming import StreamingQuery

_LATE = "Python worker failed to connect back"
_TRIES = 30


def started(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """Start a query that reads a run, again if need be, until Spark has what reads it.

    Spark gives a Python process that reads a stream ten seconds to start, and no setting makes that more.
    """
    for _ in range(_TRIES):
        query = start()
        while query.isActive and query.status["message"] == "Initializing sources":
            time.sleep(0.05)
        if _LATE not in str(query.exception()):
            return query
    raise AssertionError(f"in {_TRIES} tries: {_LATE}")
