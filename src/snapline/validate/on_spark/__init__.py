"""The judge of outputs with lineage as DataFrame jobs, for outputs of any size."""
