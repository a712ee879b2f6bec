"""The coordinator: who lives, what is decided, which line is committed, when a job is done."""
