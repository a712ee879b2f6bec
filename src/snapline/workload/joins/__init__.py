"""SPADE's two joins (section 5.2): of one sliding window, and of one window for each key."""
