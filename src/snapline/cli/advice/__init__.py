"""`snapline advise`: what to choose for a dataflow."""
