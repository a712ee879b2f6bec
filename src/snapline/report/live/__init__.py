"""The page of a run while it goes on: follows its journals, and shows them in a browser."""
