"""Starts the processes that become slots: as Spark jobs, or as plain processes of this machine."""
