"""Where things are kept: four ports, each with a form in memory and a form in files."""
