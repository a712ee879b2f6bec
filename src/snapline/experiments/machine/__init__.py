"""The machine on which an experiment runs: what it is, and who else uses it."""
