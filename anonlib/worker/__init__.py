"""The work of one task, without Spark: an Arrow table of blocks becomes released rows."""
