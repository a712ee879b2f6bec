"""Snapline beside Flink."""
