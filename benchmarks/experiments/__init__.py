"""Whether the experiments tell the truth: capacities, comparisons, and the price of measuring."""
