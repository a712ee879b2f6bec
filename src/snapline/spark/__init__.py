"""All that needs a Spark session or a Java: sessions, the jobs of slots, making input, and `doctor`."""
