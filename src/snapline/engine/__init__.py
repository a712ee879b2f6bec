"""The engine: performs what protocols ask for. It knows no protocol by name, and no transport."""
