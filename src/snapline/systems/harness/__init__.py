"""What it takes to test any system: an adapter's interface, input, faults, supervised processes."""
