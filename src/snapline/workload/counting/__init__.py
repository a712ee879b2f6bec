"""Counting (thesis 4.7): the smallest job that can be checked, a running count per key.

A count that ends too low has lost records, so it was at most once; one that ends too high at least once.
"""
