"""The coordinator: keeps track of slots, makes decisions, commits lines, and finds a job's end."""
