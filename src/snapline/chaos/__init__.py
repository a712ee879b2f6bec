"""Faults as values: a grammar to write them, plans drawn from a seed, and the rule for what they proved."""
