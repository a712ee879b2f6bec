"""Lets Spark find `spark.read.format("snapline")`, without a line of the user's.

Spark looks for packages whose names begin with `pyspark_`, and takes the class `DefaultSource` of each.
"""

from snapline.runs.data_source import RunSource as DefaultSource

__all__ = ["DefaultSource"]
