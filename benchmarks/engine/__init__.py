"""What the engine costs: records, messages, restarts."""
