"""The journal: the record of all that happened in one run."""
