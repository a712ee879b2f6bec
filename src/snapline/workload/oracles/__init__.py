"""How output is held against what is right: the comparisons that the oracles of the workloads share."""
