"""The operators: what each computes from a batch, what it keeps, and how it is captured and restored."""
