"""Connections between processes: a loop, frames, a handshake that proves a secret, a proxy with faults."""
