"""All protocols. This is the only list of them in the project."""
