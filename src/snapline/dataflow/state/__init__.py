"""State in columns: tables of keys, rows that are only appended, captures of what changed."""
