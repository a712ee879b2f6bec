"""The commands that make pages."""
