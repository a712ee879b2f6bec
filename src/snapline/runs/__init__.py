"""One run: from a dataflow and a Spark session to published output, a verdict and a result."""
