"""Batches as Arrow and Parquet: input and output in files that everybody can read."""
