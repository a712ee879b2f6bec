"""Inputs and outputs that somebody recorded of a system that Snapline did not run, and their judge."""
