"""Snapline."""
