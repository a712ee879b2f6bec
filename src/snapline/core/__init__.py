"""The sans-IO vocabulary: messages, events, effects, and the two interfaces of a protocol."""
