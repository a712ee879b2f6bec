"""Inputs whose size a run decides: feeds, and DataFrames that become one."""
