"""The simulated world: virtual time, one thread, one seed."""
