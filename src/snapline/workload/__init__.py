"""The workloads of the papers in small forms, each with its generator, its graph and its oracle."""
