"""Sliding windows, by event time and by rows: their state, and the operators that keep it."""
