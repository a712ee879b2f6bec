"""The binary form of all that driver and slots send to each other."""
