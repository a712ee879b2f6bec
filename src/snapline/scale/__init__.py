"""The simulator as a scale model: costs measured on a machine, predictions, and how good they are."""
