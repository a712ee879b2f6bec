"""The judge: whether outputs with lineage are what the inputs should have given, and if not, why."""
