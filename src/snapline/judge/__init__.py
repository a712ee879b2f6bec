"""Every verdict is made in this room; `run_directory.judge` is the one judge of a run."""
