"""The work of one task: an Arrow table of a block in, its released rows out. No Spark."""
