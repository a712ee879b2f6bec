"""Faults as data: one grammar, one plan per seed."""
