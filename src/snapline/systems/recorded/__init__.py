"""Reads and judges the inputs and outputs of a system that Snapline did not run (`validate --input`)."""
