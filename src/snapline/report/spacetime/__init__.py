"""The space-time diagram of a run: from its journal to a picture."""
