"""The papers' figures and tables as experiments: one file of data each, claims, and what became of them."""
