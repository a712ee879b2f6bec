"""What watches a simulated run: an account of its own, and invariants that hold at every moment."""
