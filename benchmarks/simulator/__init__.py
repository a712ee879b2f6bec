"""How quickly the simulator runs."""
