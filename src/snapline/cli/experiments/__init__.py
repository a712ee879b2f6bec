"""The commands for experiments: what many runs say together."""
