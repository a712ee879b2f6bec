"""The command line: one module per command. What a command prints is made in `terminal`."""
