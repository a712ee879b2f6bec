"""How much a dataflow can take in: which rates it sustains, and the search for the highest of them."""
