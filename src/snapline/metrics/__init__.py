"""The figures of a run: each is a pure function of measured seconds and journal entries."""
