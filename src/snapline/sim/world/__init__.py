"""The simulated world: virtual time, processes, links and stores, all in one thread."""
