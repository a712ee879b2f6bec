"""What the command line shows, and the options that it understands: console, tables, summaries, help."""
