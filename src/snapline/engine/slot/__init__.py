"""One slot: its tasks and channels, the way of a checkpoint, and the slot's part of a rollback."""
