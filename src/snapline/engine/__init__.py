"""Performs effects; knows no protocol and no transport."""
