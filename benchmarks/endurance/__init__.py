"""Long runs: does anything grow?"""
