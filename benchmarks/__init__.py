"""Programs that measure; `benchmarks/README.md` lists them."""
