"""What a run that is not over had read and put out by its last line, so that this much can be judged."""
