"""Exhaustive search: two slots, a few messages, and every order in which things can happen."""
