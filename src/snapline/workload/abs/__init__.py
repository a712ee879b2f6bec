"""The evaluation topology of ABS (section 7): six operators, three full shuffles, per-key aggregates.

The paper says what the job is made of, and no more: 6 operators, as parallel as there are nodes; 3 full
network shuffles; per-key aggregates and source offsets as state. Here they are a source, a map, three
running counts, each by another key, and a sink. A record goes through all of it and takes its three counts
along, so that the end shows what every stage did to every record.
"""
