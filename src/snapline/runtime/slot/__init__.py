"""A slot as a real process: its loop, what it stores in the background, what it measures."""
