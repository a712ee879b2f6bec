"""Exhaustively in the small: two slots, a few messages, and every order in which things can happen."""
