"""One run of Snapline's own: from a dataflow and a Spark session to a result that can be opened again."""
