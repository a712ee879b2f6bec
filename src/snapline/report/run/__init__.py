"""A run as pages show it: what is read of its directory, and what follows from that."""
