"""The judge of outputs that name the inputs behind them: what is wrong with them, and why."""
