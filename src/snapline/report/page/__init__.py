"""Pages: one HTML file each, which needs nothing beside it and fetches nothing."""
