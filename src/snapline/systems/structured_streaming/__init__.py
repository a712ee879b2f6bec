"""Spark Structured Streaming as a system under test."""
