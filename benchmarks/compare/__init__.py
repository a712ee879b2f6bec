"""Snapline beside Flink, a native limit and timely dataflow."""
