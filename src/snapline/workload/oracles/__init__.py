"""How output is compared with what is right: the comparisons that the oracles of the workloads share."""
