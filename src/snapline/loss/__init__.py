"""Bounded loss: what a run may lose at most, what it says that it lost, and what that excuses."""
