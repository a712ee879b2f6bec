"""One slot: its tasks and channels, how checkpoints are stored, and the slot's part of a rollback."""
