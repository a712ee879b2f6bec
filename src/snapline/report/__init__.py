"""Pictures and tables made from journals."""
