"""What the machine could do: the queries as native code, and in timely dataflow."""
