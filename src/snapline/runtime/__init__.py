"""The real adapter of the engine: slots are processes that talk over TCP, and files that survive them."""
