"""PGVal's two topologies (section 3.1), whose outputs name the inputs behind them.

A web server's log: GET requests read resources, POST requests change them. SST counts the GETs of each
resource and window; MST joins both streams by resource and window and counts both. Every output carries the
ids of the events that made it, as they were taken in and never deduplicated, so that an event that was
counted twice in the state is seen, and an event that belongs to a window already closed leaves through a
sink of its own: every id is expected exactly once, in its window or among the late.
"""
