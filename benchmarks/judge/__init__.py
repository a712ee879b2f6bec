"""The judge: at scale, and on runs that were broken."""
