"""The config: its fields, reading it from a file, and checking it before a run."""
