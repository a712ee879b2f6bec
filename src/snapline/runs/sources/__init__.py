"""The sources of a run that come from Spark: DataFrames are staged, and streams are read by queries."""
