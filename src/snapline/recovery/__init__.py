"""Pure functions over checkpoint metadata: graph, line, Z-paths, replay ranges, garbage."""
