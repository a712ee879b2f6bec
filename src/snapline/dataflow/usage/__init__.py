"""Help for whoever writes a dataflow: checks of what is given, and answers to names that are not there."""
