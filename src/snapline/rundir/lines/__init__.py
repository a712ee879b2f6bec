"""The lines that a run keeps: which they are, what each needs, whether all of it is there, and forks."""
