"""Checkpoints in figures: the account of all of them, and the history of each."""
