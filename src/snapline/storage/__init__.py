"""Storage: the ports through which a run reads and writes, with one form in memory and one as files."""
