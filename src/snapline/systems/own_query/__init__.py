"""A user's own streaming query under test: killed, restarted, compared with itself as a batch."""
