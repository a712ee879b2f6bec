"""What a run achieved: every figure is a pure function over seconds and journal entries."""
