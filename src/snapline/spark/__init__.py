"""All that needs a Spark session or a Java: sessions, jobs that become slots, stored input, the doctor."""
