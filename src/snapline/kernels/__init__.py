"""Loops over the records of a batch, each in two forms that give the same results.

The form in numpy is always there. The other is a plain loop that numba compiles for this machine; `load`
puts it in the place of the first (`forms.py`). Nothing here knows more than arrays.
"""
