"""Where things are kept: ports to the outside, and a `Storage` in memory and in files that makes them."""
