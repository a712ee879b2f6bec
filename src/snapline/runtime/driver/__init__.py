"""The driver of a run: the coordinator in a real process, the slots it knows, the faults it injects."""
