"""A dataflow without failures: what its output should be, and whether its operators survive a restore."""
