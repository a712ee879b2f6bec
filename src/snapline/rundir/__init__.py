"""What a run is before and after it runs: its specification, its program, the directory it leaves."""
