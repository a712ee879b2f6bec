"""What all workloads share: what a workload is, inputs that are computed, settings."""
